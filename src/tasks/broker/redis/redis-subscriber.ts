import type { Redis } from 'ioredis';
import { reportUncaught } from '../../../core/report-uncaught.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import { brokerClosed, unavailable } from './redis-errors.ts';

/** Is given what was published. */
export type RedisMessageListener = (message: Buffer) => void;

/** How often a connection that only listens is asked whether it is one, in milliseconds: silence is all that it has. */
const PING_MS = 10_000;

/**
 * A connection of its own that listens to channels, made when the first one is asked for and ended with the last.
 *
 * It is subscribed again whenever it was lost. What is published meanwhile is lost, as pub/sub has it.
 */
export class RedisSubscriber {
  readonly #connect: () => Redis;
  readonly #timeoutMs: number;
  readonly #listeners = new Map<string, Set<RedisMessageListener>>();
  readonly #waiters = new Set<{ resolve: () => void; reject: (error: Error) => void }>();
  #client: Redis | undefined;
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #isClosed = false;

  /** @param connect - a client that does not connect yet, and never again: to a node that is there, if it is a cluster. */
  constructor(connect: () => Redis, timeoutMs: number) {
    this.#connect = connect;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Listens to a channel until `unsubscribe`; what a listener throws is an uncaught exception.
   *
   * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis has not confirmed it in time; it does not listen then.
   */
  async subscribe(op: string, channel: string, listener: RedisMessageListener): Promise<void> {
    if (this.#isClosed) throw brokerClosed(op);
    this.#add(channel, listener);
    try {
      if (this.#client?.status === 'ready') await this.#client.subscribe(channel);
      else await this.#untilSubscribed(op);
    } catch (error) {
      this.unsubscribe(channel, listener);
      throw this.#failed(op, error);
    }
  }

  /** As `subscribe`, for the first channel, and as soon as there is a connection: it is tried for ever. */
  listen(channel: string, listener: RedisMessageListener): void {
    this.#add(channel, listener);
    this.#open();
  }

  /** Ends the connection: the next one may be to another server. */
  reconnect(): void {
    this.#client?.disconnect();
  }

  /** Does nothing if it does not listen. */
  unsubscribe(channel: string, listener: RedisMessageListener): void {
    const listeners = this.#listeners.get(channel);
    if (listeners?.delete(listener) !== true || listeners.size > 0) return;
    this.#listeners.delete(channel);
    if (this.#listeners.size === 0) this.#end();
    else if (this.#client?.status === 'ready') this.#client.unsubscribe(channel).catch(this.#onFailure);
  }

  /** Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#end();
    for (const { reject } of this.#waiters) reject(new Error('closed'));
  }

  #add(channel: string, listener: RedisMessageListener): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
  }

  async #untilSubscribed(op: string): Promise<void> {
    if (this.#client === undefined && this.#timer === undefined) this.#open();
    await new Promise<void>((resolve, reject) => {
      const settled = (settle: () => void) => () => {
        clearTimeout(timeout);
        this.#waiters.delete(waiter);
        settle();
      };
      const waiter = {
        resolve: settled(resolve),
        reject: (error: Error) => {
          settled(() => {
            reject(error);
          })();
        },
      };
      const timeout = setTimeout(() => {
        waiter.reject(this.#lastError ?? new Error(`${op} has had no answer`));
      }, this.#timeoutMs);
      this.#waiters.add(waiter);
    });
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
      this.#tell(channel.toString(), message);
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
    this.#attempts = 0;
    for (const { resolve } of this.#waiters) resolve();
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
    }, reconnectDelayMs(++this.#attempts));
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    const client = this.#client;
    this.#client = undefined;
    client?.disconnect();
  }

  readonly #onFailure = (error: unknown): void => {
    // The first one tells why; what comes after it is that there is no connection.
    if (error instanceof Error) this.#lastError ??= error;
  };

  #failed(op: string, error: unknown): Error {
    return this.#isClosed ? brokerClosed(op) : unavailable(op, error);
  }

  #tell(channel: string, message: Buffer): void {
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) {
      try {
        listener(message);
      } catch (error) {
        reportUncaught(error);
      }
    }
  }
}
