import type { Cluster, Redis } from 'ioredis';
import { planConnection, type RedisConnectionOptions, type RedisHealth } from './connection-options.ts';
import { ConnectionWatch } from './connection-watch.ts';
import { commonSettings, makeClient, type RedisClient } from './make-client.ts';
import { withQuietStream } from './quiet-stream.ts';
import { brokerClosed, commandTimedOut, isTimeout, toBrokerError } from './redis-errors.ts';
import type { RedisHost } from './redis-url.ts';
import { RedisSubscriber, type RedisMessageListener } from './redis-subscriber.ts';
import { SentinelWatch } from './sentinel-watch.ts';

/** How long closing waits for connections to end, in milliseconds: they are cut before. */
const CLOSE_MS = 250;

/**
 * The way to Redis, the only one that makes clients: one connection for commands, and one that listens to channels as soon as
 * somebody wants to.
 *
 * HOW it fails. What is asked is sent once and answered, or rejects in time:
 *
 *   there is no connection      waits for one, `timeoutMs` at most; nothing is sent
 *   the connection is lost      rejects at once; it may have happened
 *   no answer in `timeoutMs`    rejects, and the connection is given up: what is asked next waits for a new one, which
 *                               a server that does not answer never completes. So little is left in its socket for the
 *                               moment when it goes on, and nobody would wait for it
 *   Redis cannot now            rejects; see `toBrokerError`
 *
 * It connects again and again meanwhile, ever more slowly. In a cluster that is so for each of its nodes, and the health is
 * that of the whole.
 */
export class RedisConnection {
  readonly #client: RedisClient;
  readonly #isOwn: boolean;
  readonly #timeoutMs: number;
  readonly #watch: ConnectionWatch;
  readonly #subscriber: RedisSubscriber;
  readonly #sentinels?: SentinelWatch;
  #isClosed = false;
  #isGivingUp = false;
  /** What sentinels have said, if it is not clear yet that we are there. */
  #primary: RedisHost | undefined;

  /**
   * Connects, and does not wait for it.
   *
   * @throws TypeError or RangeError - an option is wrong.
   */
  constructor(options: RedisConnectionOptions) {
    const { timeoutMs, onHealth, source } = planConnection(options);
    this.#isOwn = 'server' in source;
    this.#timeoutMs = timeoutMs;
    this.#client = 'server' in source ? makeClient(source.server, timeoutMs) : source.client;
    // Also after it was closed, while connections end: an error that nobody listens to is printed.
    if (this.#isOwn) this.#client.on('error', ignore);
    this.#watch = new ConnectionWatch(this.#client, onHealth);
    this.#subscriber = new RedisSubscriber(() => this.#makeListener(), timeoutMs);
    if ('server' in source) {
      this.#sentinels = new SentinelWatch(source.server, timeoutMs, (primary) => {
        this.#goOver(primary);
      });
      this.#client.on('ready', () => {
        this.#leaveOthers();
      });
    }
    if (this.#client.status === 'wait') this.#client.connect().catch(ignore);
  }

  /** For what {@link RedisConnection.run} cannot do: defining scripts. Whoever sends commands with it is on its own. */
  get commands(): RedisClient {
    return this.#client;
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
   * @param op - who wants to, for errors.
   * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - see above. `ERR_BROKER_CLOSED`. Other errors of Redis are as they are.
   */
  async run<T>(op: string, send: (client: RedisClient) => Promise<T>): Promise<T> {
    if (this.#isClosed) throw brokerClosed(op);
    if (!this.#watch.isReady) await this.#watch.untilReady(op, this.#timeoutMs);
    try {
      return await this.#inTime(send(this.#client));
    } catch (error) {
      throw this.#failed(op, error);
    }
  }

  /**
   * Listens to a channel until {@link RedisConnection.unsubscribe}, also after the connection was lost and is back.
   *
   * @throws EscapementError `ERR_BROKER_UNAVAILABLE` - Redis has not confirmed it in time; it does not listen then.
   */
  subscribe(op: string, channel: string, listener: RedisMessageListener): Promise<void> {
    return this.#subscriber.subscribe(op, channel, listener);
  }

  unsubscribe(channel: string, listener: RedisMessageListener): void {
    this.#subscriber.unsubscribe(channel, listener);
  }

  /**
   * Ends what it has opened, at once: who waits for an answer is told `ERR_BROKER_CLOSED`. A client that was passed in stays as
   * it is, and what it was asked is waited for. Idempotent.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#watch.close();
    this.#subscriber.close();
    this.#sentinels?.close();
    if (this.#isOwn) await disconnect(this.#client);
  }

  #failed(op: string, error: unknown): unknown {
    if (this.#isClosed) return brokerClosed(op);
    if (isTimeout(error)) void this.#giveUp();
    return toBrokerError(error, op);
  }

  /** A client that was passed in may have no limit of its own. */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    if (this.#isOwn) return answer;
    let timeout: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timeout = setTimeout(() => {
        reject(commandTimedOut());
      }, this.#timeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** The primary is another one. A connection that is only being made is not interrupted: ioredis would not try again. */
  #goOver(primary: RedisHost): void {
    this.#primary = primary;
    this.#subscriber.reconnect();
    if (this.#client.status === 'ready') this.#leaveOthers();
  }

  /** Ends the connection if it is to another server than the primary that we have heard of last. */
  #leaveOthers(): void {
    const client = this.#client;
    const primary = this.#primary;
    this.#primary = undefined;
    if (primary === undefined || this.#isClosed || isClusterClient(client)) return;
    const { remoteAddress, remotePort } = client.stream;
    if (remoteAddress !== primary.host || remotePort !== primary.port) client.disconnect(true);
  }

  /** Ends the connection to a server that does not answer. Only one that is ours: others may have other things to wait for. */
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
    if (!isClusterClient(client)) return withQuietStream(client.duplicate(settings));
    // What is published to one node of a cluster is heard at all of them.
    const nodes = client.nodes('master');
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) throw new Error('no node of the cluster is known');
    return withQuietStream(node.duplicate(settings));
  }
}

function isClusterClient(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/** A cluster does not tell which of its nodes has not answered. One that is ended is found again when it is needed. */
async function endSilentNodes(cluster: Cluster): Promise<void> {
  await Promise.all(
    cluster.nodes().map(async (node) => {
      await node.ping().catch(() => {
        node.disconnect();
      });
    }),
  );
}

/** Ends a client for good. One that waits for its next attempt to connect is ended already, and does not say so. */
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
  // What fails is told by the client's events, or does not matter any more.
}
