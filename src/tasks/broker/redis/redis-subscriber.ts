import type { Redis } from 'ioredis';
import { BackOff } from '../../../core/back-off.ts';
import { EscapementError } from '../../../core/errors.ts';
import { callEach } from '../../../core/report-uncaught.ts';
import { WaitLine } from '../../../core/wait-line.ts';
import { brokerClosed } from '../broker-errors.ts';
import { makeSentinelClient, RECONNECT } from './client.ts';
import type { RedisHost, ServerPlan } from './connection-options.ts';
import { unavailable } from './redis-errors.ts';

type RedisMessageListener = (message: Buffer) => void;

/** Interval of pings, in milliseconds: without them, a connection that was lost and one without messages look the same. */
const PING_MS = 10_000;

/**
 * A connection that listens to channels: opened for the first one, and closed after the last.
 *
 * After a loss it connects and subscribes again. Messages that are published in the meantime are lost, as always in pub/sub.
 */
export class RedisSubscriber {
  readonly #connect: () => Redis;
  readonly #timeoutMs: number;
  readonly #listeners = new Map<string, Set<RedisMessageListener>>();
  readonly #backOff = new BackOff(RECONNECT);
  readonly #waiting = new WaitLine<void>();
  #client: Redis | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #isClosed = false;

  /** @param connect - returns a client that connects when `connect` is called, and once: for a cluster, to one of its nodes. */
  constructor(connect: () => Redis, timeoutMs: number) {
    this.#connect = connect;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Listens to a channel until `unsubscribe`; an error that a listener throws is an uncaught exception.
   *
   * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis has not confirmed it in time; the listener is removed.
   */
  async subscribe(channel: string, listener: RedisMessageListener): Promise<void> {
    if (this.#isClosed) throw brokerClosed();
    this.#add(channel, listener);
    try {
      if (this.#client?.status === 'ready') await this.#client.subscribe(channel);
      else await this.#untilSubscribed();
    } catch (error) {
      this.unsubscribe(channel, listener);
      throw this.#failed(error);
    }
  }

  /** As `subscribe`, for the first channel, without waiting: it tries to connect for ever. */
  listen(channel: string, listener: RedisMessageListener): void {
    this.#add(channel, listener);
    this.#open();
  }

  /** Ends the connection: the next one may be to another server. */
  reconnect(): void {
    this.#client?.disconnect();
  }

  unsubscribe(channel: string, listener: RedisMessageListener): void {
    const listeners = this.#listeners.get(channel);
    if (listeners?.delete(listener) !== true || listeners.size > 0) return;
    this.#listeners.delete(channel);
    if (this.#listeners.size === 0) this.#end();
    else if (this.#client?.status === 'ready') this.#client.unsubscribe(channel).catch(this.#onFailure);
  }

  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#end();
    this.#waiting.failAll(brokerClosed());
  }

  #add(channel: string, listener: RedisMessageListener): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
  }

  async #untilSubscribed(): Promise<void> {
    if (this.#client === undefined && this.#timer === undefined) this.#open();
    await waitInTime(this.#waiting, this.#timeoutMs, () => this.#lastError);
  }

  #open(): void {
    this.#timer = undefined;
    this.#lastError = undefined;
    let client: Redis;
    try {
      client = this.#connect();
    } catch (error) {
      this.#onFailure(error);
      this.#reopenLater();
      return;
    }
    this.#client = client;
    client.on('error', this.#onFailure);
    client.on('end', () => {
      if (this.#client === client) this.#reopenLater();
    });
    client.on('messageBuffer', (channel: Buffer, message: Buffer) => {
      const listeners = [...(this.#listeners.get(channel.toString()) ?? [])];
      callEach(listeners, (listener) => {
        listener(message);
      });
    });
    client
      .connect()
      .then(() => this.#subscribeAll(client))
      .catch((error: unknown) => {
        this.#onFailure(error);
        client.disconnect();
      });
  }

  async #subscribeAll(client: Redis): Promise<void> {
    await client.subscribe(...this.#listeners.keys());
    if (this.#client !== client) return;
    this.#backOff.reset();
    this.#waiting.giveAll();
    this.#timer = setInterval(() => {
      client.ping().catch(() => {
        client.disconnect();
      });
    }, PING_MS);
  }

  #reopenLater(): void {
    clearInterval(this.#timer);
    this.#client = undefined;
    this.#timer = setTimeout(() => {
      this.#open();
    }, this.#backOff.next());
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    const client = this.#client;
    this.#client = undefined;
    client?.disconnect();
  }

  readonly #onFailure = (error: unknown): void => {
    // The first error is the cause; later ones only report that there is no connection.
    if (error instanceof Error) this.#lastError ??= error;
  };

  #failed(error: unknown): unknown {
    if (this.#isClosed) return brokerClosed();
    return error instanceof EscapementError ? error : unavailable(error);
  }
}

/** Channel on which sentinels publish a new primary: `name host port host port`, the old one first. */
const SWITCH_CHANNEL = '+switch-master';

/**
 * Listens to the sentinels for a new primary.
 *
 * A primary that was replaced while it was running accepts writes for some ten seconds more, until the sentinels make it a replica;
 * then these writes are lost. It listens to each sentinel: the first one that publishes the new primary may be any of them.
 */
export class SentinelWatch {
  readonly #subscribers: readonly RedisSubscriber[];

  constructor(plan: ServerPlan, timeoutMs: number, onSwitch: (primary: RedisHost) => void) {
    const { address } = plan;
    const [sentinels, master] = address.kind === 'sentinel' ? [address.sentinels, address.master] : [[], ''];
    this.#subscribers = sentinels.map((sentinel) => {
      const connect = (): Redis => makeSentinelClient(plan, sentinel, timeoutMs);
      const subscriber = new RedisSubscriber(connect, timeoutMs);
      subscriber.listen(SWITCH_CHANNEL, (message) => {
        const [name, , , host = '', port] = message.toString().split(' ');
        if (name === master) onSwitch({ host, port: Number(port) });
      });
      return subscriber;
    });
  }

  close(): void {
    for (const subscriber of this.#subscribers) subscriber.close();
  }
}

/**
 * Waits in a line of operations that need a connection.
 *
 * @param cause - returns why there is no connection, if that is known.
 * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - not in time.
 */
export async function waitInTime(
  line: WaitLine<void>,
  limitMs: number,
  cause: () => Error | undefined,
): Promise<void> {
  const controller = new AbortController();
  const timeout = setTimeout(() => {
    controller.abort(unavailable(cause() ?? new Error(`no answer for ${limitMs} ms`)));
  }, limitMs);
  try {
    await line.wait(() => undefined, controller.signal);
  } finally {
    clearTimeout(timeout);
  }
}
