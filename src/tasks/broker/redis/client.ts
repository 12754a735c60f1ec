import type { ConnectionOptions } from 'node:tls';
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { RedisHost, ServerPlan } from './connection-options.ts';
import { isReadOnly } from './redis-errors.ts';

/* How clients of ioredis are made. Only the files of a connection use this one. */

export type RedisClient = Redis | Cluster;

export function isClusterClient(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/** Replies are plain values, whatever the version of the protocol. */
export type ConnectionSettings = Omit<RedisOptions, 'replyMapping'> & { readonly replyMapping: 'legacy' };

/** How long a connection that is given up may take to end in order, in milliseconds; then it is cut. */
const DISCONNECT_MS = 50;

/**
 * Returns the settings of all our connections.
 *
 * A command is sent immediately or never, and once. One that waited in a queue, or was sent again after a loss, would run after its
 * caller has given up: its lease would belong to no worker, and an enqueue would conflict with itself.
 */
export function commonSettings(timeoutMs: number): ConnectionSettings {
  return {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // RedisSubscriber subscribes again, and handles failures.
    autoResubscribe: false,
    commandTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    disconnectTimeout: DISCONNECT_MS,
    // All versions of Redis and of the client support it, and it saves a round trip.
    protocol: 2,
    replyMapping: 'legacy',
    disableClientInfo: true,
    connectionName: 'escapement',
    // After a failover the connection leads to a server that is a replica now.
    reconnectOnError: isReadOnly,
  };
}

/** Returns a client that connects when `connect` is called, and then again after every loss. */
export function makeClient(plan: ServerPlan, timeoutMs: number): RedisClient {
  const { address, username, password, tls } = plan;
  const settings: ConnectionSettings = {
    ...commonSettings(timeoutMs),
    retryStrategy: reconnectDelayMs,
    lazyConnect: true,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
  switch (address.kind) {
    case 'server':
      return quietRedis({ ...settings, ...address.server, db: address.db });
    case 'socket':
      return quietRedis({ ...settings, path: address.path, db: address.db });
    case 'sentinel':
      return quietRedis({
        ...settings,
        ...sentinelTls(tls),
        db: address.db,
        name: address.master,
        sentinels: [...address.sentinels],
        sentinelCommandTimeout: timeoutMs,
        sentinelRetryStrategy: reconnectDelayMs,
        ...(address.username === undefined ? {} : { sentinelUsername: address.username }),
        ...(address.password === undefined ? {} : { sentinelPassword: address.password }),
      });
    case 'cluster': {
      const cluster = new Cluster([...address.nodes], clusterSettings(settings));
      cluster.on('+node', withQuietStream);
      return cluster;
    }
  }
}

/** Returns a client of one of the sentinels themselves, which connects when `connect` is called, and once. */
export function makeSentinelClient(
  { address, tls }: ServerPlan,
  sentinel: RedisHost,
  timeoutMs: number,
): Redis {
  return quietRedis({
    ...commonSettings(timeoutMs),
    ...sentinel,
    retryStrategy: null,
    lazyConnect: true,
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
    ...(tls === undefined ? {} : { tls }),
  });
}

/** Returns the settings of a cluster from those of its nodes. */
export function clusterSettings(
  settings: ConnectionSettings,
): ClusterOptions & { readonly redisOptions: ConnectionSettings } {
  return {
    enableOfflineQueue: false,
    lazyConnect: true,
    clusterRetryStrategy: reconnectDelayMs,
    redisOptions: settings,
    // A certificate is for a name, which must not be resolved to an address first.
    ...(settings.tls === undefined ? {} : { dnsLookup: keepName }),
  };
}

const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, callback) => {
  callback(null, name);
};

function quietRedis(options: ConnectionSettings): Redis {
  const client = withQuietStream(new Redis(options));
  client.on('error', (error: Error) => {
    if (isSelectRefused(error)) client.disconnect(true);
  });
  return client;
}

/** The database does not exist, or this user may not use it: ioredis reports that and continues in database 0. */
function isSelectRefused(error: Error): boolean {
  return (error as Error & { command?: { name?: unknown } }).command?.name === 'select';
}

function sentinelTls(
  tls: ConnectionOptions | undefined,
): Pick<RedisOptions, 'sentinelTLS' | 'enableTLSForSentinelMode'> {
  return tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true };
}

/**
 * Lets the sockets of a client fail more than once. ioredis handles only the first error of each, and a second one, as when both
 * sides abort a TLS handshake, would be an uncaught exception. No event comes after every first error and before every second
 * one, so the handler is added when the client is given its socket.
 */
export function withQuietStream<C extends Redis>(client: C): C {
  let { stream } = client;
  Object.defineProperty(client, 'stream', {
    configurable: true,
    enumerable: true,
    get: () => stream,
    set: (next: Redis['stream']) => {
      stream = next;
      next.on('error', ignore);
    },
  });
  return client;
}

function ignore(): void {
  // ioredis has reported the first error.
}

/** The first wait, in milliseconds: most connections that are lost are back at once. */
const FIRST_RETRY_MS = 50;
/** The longest wait, in milliseconds: that late may a Redis that is back be noticed. */
const LONGEST_RETRY_MS = 3_000;

/**
 * Returns how long to wait before the next attempt to connect: twice as long each time, up to three seconds, and a random part of
 * the upper half of that, so that a fleet does not return in step.
 *
 * @param attempt - from 1.
 */
export function reconnectDelayMs(attempt: number): number {
  const mostMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10), LONGEST_RETRY_MS);
  return Math.ceil(mostMs * (0.5 + Math.random() / 2));
}
