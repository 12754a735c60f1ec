import type { Cluster, Redis } from 'ioredis';
import { inOwnTurn } from '../../../core/own-turn.ts';
import { reportUncaught } from '../../../core/report-uncaught.ts';
import { WaitLine } from '../../../core/wait-line.ts';
import { brokerClosed } from '../broker-errors.ts';
import { commonSettings, isClusterClient, makeClient, mended, type RedisClient } from './client.ts';
import {
  planConnection,
  type RedisConnectionOptions,
  type RedisHealth,
  type RedisHost,
} from './connection-options.ts';
import { commandTimedOut, isTimeout, toBrokerError, withoutPassword } from './redis-errors.ts';
import { RedisSubscriber, SentinelWatch, waitInTime } from './redis-subscriber.ts';

/** How long closing waits for connections to end, in milliseconds: they have been cut by then. */
const CLOSE_MS = 250;

/**
 * The connection to Redis: one socket for commands, and one for channels from the first subscription on.
 *
 * HOW it fails. A command is sent once and answered, or it rejects in time:
 *
 *   there is no connection      waits for one, `timeoutMs` at most; nothing is sent
 *   the connection is lost      rejects immediately; the command may have run
 *   no answer in `timeoutMs`    rejects, and the connection is given up: the next commands wait for a new one, which a
 *                               server that hangs never completes. So few commands are left in its socket, which it runs
 *                               when it continues, although their callers have given up
 *   Redis cannot serve now      rejects; see `toBrokerError`
 *
 * In the meantime it connects again and again, at growing intervals. In a cluster that holds for each of its nodes, and the
 * health is that of the cluster.
 */
export class RedisConnection {
  readonly channels: RedisSubscriber;
  readonly #client: RedisClient;
  readonly #isOwn: boolean;
  readonly #timeoutMs: number;
  readonly #watch: ConnectionWatch;
  readonly #sentinels?: SentinelWatch;
  #isClosed = false;
  #isGivingUp = false;
  /** The primary that sentinels have reported, until the client is connected to it. */
  #primary: RedisHost | undefined;

  /** Begins to connect. @param options - see {@link planConnection}. @throws TypeError - as that. */
  constructor(options: RedisConnectionOptions) {
    const { timeoutMs, onHealth, source } = planConnection(options);
    this.#isOwn = 'server' in source;
    this.#timeoutMs = timeoutMs;
    this.#client = 'server' in source ? makeClient(source.server, timeoutMs) : source.client;
    // Also after closing, while connections end: ioredis prints an error without a listener.
    if (this.#isOwn) this.#client.on('error', ignore);
    this.#watch = new ConnectionWatch(this.#client, onHealth);
    this.channels = new RedisSubscriber(() => this.#makeListener(), timeoutMs);
    if ('server' in source) {
      this.#sentinels = new SentinelWatch(source.server, timeoutMs, (primary) => {
        this.#follow(primary);
      });
      this.#client.on('ready', () => {
        this.#leaveFormerPrimary();
      });
    }
    if (this.#client.status === 'wait') this.#client.connect().catch(ignore);
  }

  get isCluster(): boolean {
    return this.#client.isCluster;
  }

  get health(): RedisHealth {
    return this.#watch.health;
  }

  /**
   * Sends a command, or several at once.
   *
   * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - see above. `ERR_BROKER_CLOSED`. `ERR_WIRE_MESSAGE` - a key has a wrong type.
   */
  async run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw brokerClosed();
    if (!this.#watch.isReady) await this.#watch.untilReady(this.#timeoutMs);
    try {
      return await this.#inTime(send(this.#client));
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /**
   * Ends its connections immediately; pending operations reject with `ERR_BROKER_CLOSED`. A client that was passed in stays open,
   * and operations that it has sent settle as usual. Idempotent.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#watch.close();
    this.channels.close();
    this.#sentinels?.close();
    if (this.#isOwn) await disconnect(this.#client);
  }

  #failed(error: unknown): unknown {
    if (this.#isClosed) return brokerClosed();
    if (isTimeout(error)) void this.#giveUp();
    return toBrokerError(error);
  }

  /** A client that was passed in may have no limit of its own. */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    if (this.#isOwn) return answer;
    let timeout: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timeout = setTimeout(() => {
        inOwnTurn(() => {
          reject(commandTimedOut()); // unless the answer has arrived while the event loop was blocked
        });
      }, this.#timeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Moves to another primary. A connection that is only being made is not interrupted: ioredis would not try again. */
  #follow(primary: RedisHost): void {
    this.#primary = primary;
    this.channels.reconnect();
    if (this.#client.status === 'ready') this.#leaveFormerPrimary();
  }

  /** Ends the connection unless it leads to the primary that sentinels have reported last. */
  #leaveFormerPrimary(): void {
    const client = this.#client;
    const primary = this.#primary;
    this.#primary = undefined;
    if (primary === undefined || this.#isClosed || isClusterClient(client)) return;
    const { remoteAddress, remotePort } = client.stream;
    if (remoteAddress !== primary.host || remotePort !== primary.port) client.disconnect(true);
  }

  /** Ends the connection to a server that does not answer; not that of a client that was passed in, which may have other users. */
  async #giveUp(): Promise<void> {
    if (!this.#isOwn || this.#isGivingUp) return;
    this.#isGivingUp = true;
    if (isClusterClient(this.#client)) await endSilentNodes(this.#client);
    else if (this.#watch.isReady) this.#client.disconnect(true);
    this.#isGivingUp = false;
  }

  #makeListener(): Redis {
    const settings = {
      ...commonSettings(this.#timeoutMs),
      retryStrategy: null,
      sentinelRetryStrategy: () => null,
      lazyConnect: true,
      readOnly: false,
    };
    const client = this.#client;
    if (!isClusterClient(client)) return mended(client.duplicate(settings));
    // A message that is published to one node of a cluster is received at all of them.
    const nodes = client.nodes('master');
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) throw new Error('the cluster client has no nodes');
    return mended(node.duplicate(settings));
  }
}

/** A client of a cluster does not report which node has not answered. A node that is disconnected is connected again when it is used. */
async function endSilentNodes(cluster: Cluster): Promise<void> {
  await Promise.all(
    cluster.nodes().map(async (node) => {
      await node.ping().catch(() => {
        node.disconnect();
      });
    }),
  );
}

/** Ends a client for good. One that waits for its next attempt to connect has ended already, and emits no event. */
function disconnect(client: RedisClient): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, client.status === 'reconnecting' ? 0 : CLOSE_MS);
    client.once('end', () => {
      clearTimeout(late);
      resolve();
    });
    client.disconnect();
  });
}

function ignore(): void {
  // The events of the client have reported the error, or it no longer matters.
}

/**
 * Follows the events of a client, reports each change of its health once, and lets operations wait for the connection.
 *
 * A client emits more events than there are changes: an error and an end for every attempt that fails, in an order that depends
 * on the failure.
 */
class ConnectionWatch {
  readonly #client: RedisClient;
  readonly #onHealth: ((health: RedisHealth) => void) | undefined;
  readonly #waiting = new WaitLine<void>();
  #health: RedisHealth = { state: 'connecting' };
  /** The first error of the last attempt that had one: it is the cause, and later ones only report that there is no connection. */
  #lastError: Error | undefined;
  #hasFailed = false;

  readonly #listeners: Readonly<Record<string, (error: Error) => void>> = {
    connecting: () => {
      this.#hasFailed = false;
    },
    ready: () => {
      // ioredis 5 also emits it for a connection that it has ended because of an invalid password.
      if (!this.isReady) return;
      this.#lastError = undefined;
      this.#hasFailed = false;
      this.#become({ state: 'ready' });
      this.#waiting.giveAll();
    },
    error: (error) => {
      if (!this.#hasFailed) this.#lastError = withoutPassword(error);
      this.#hasFailed = true;
      if (!this.isReady) this.#lost();
    },
    close: () => {
      this.#lost();
    },
    end: () => {
      this.#lost();
    },
  };

  constructor(client: RedisClient, onHealth: ((health: RedisHealth) => void) | undefined) {
    this.#client = client;
    this.#onHealth = onHealth;
    for (const [event, listener] of Object.entries(this.#listeners)) client.on(event, listener);
    if (this.isReady) this.#health = { state: 'ready' };
  }

  get health(): RedisHealth {
    return this.#health;
  }

  /**
   * Read from the client, a little before its events. A connection that is ending is not ready, although its status still is: the
   * client would refuse every command immediately, and a caller that retries in a loop would never let it end.
   */
  get isReady(): boolean {
    const client = this.#client;
    return client.status === 'ready' && ('stream' in client ? client.stream.writable : true);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - it is not ready within the limit. */
  untilReady(limitMs: number): Promise<void> {
    return waitInTime(this.#waiting, limitMs, () => this.#lastError);
  }

  /** Reports nothing more; pending operations reject. */
  close(): void {
    for (const [event, listener] of Object.entries(this.#listeners)) this.#client.off(event, listener);
    this.#waiting.failAll(brokerClosed());
  }

  #lost(): void {
    if (this.#health.state === 'unavailable') return;
    this.#become({ state: 'unavailable', cause: this.#lastError ?? new Error('the connection was closed') });
  }

  #become(health: RedisHealth): void {
    if (health.state === this.#health.state) return;
    this.#health = health;
    try {
      this.#onHealth?.(health);
    } catch (error) {
      reportUncaught(error);
    }
  }
}
