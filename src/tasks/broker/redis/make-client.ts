import type { ConnectionOptions } from 'node:tls';
import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { ServerPlan } from './connection-options.ts';
import type { RedisHost } from './redis-url.ts';
import { withQuietStream } from './quiet-stream.ts';
import { isReadOnly } from './redis-errors.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';

/** What a client is for a broker. */
export type RedisClient = Redis | Cluster;

/** As plain values, whatever version of the protocol is spoken. */
export type ConnectionSettings = Omit<RedisOptions, 'replyMapping'> & { readonly replyMapping: 'legacy' };

/** How long a connection that is given up may take to end in order, in milliseconds; then it is cut. */
const DISCONNECT_MS = 50;

/**
 * Settings of every connection that is ours.
 *
 * A command is sent at once or never, and once: one that waits in a queue, or is sent again after a loss, would be carried
 * out when nobody waits for the answer. A lease would then go to nobody, and an enqueue in conflict with itself.
 */
export function commonSettings(timeoutMs: number): ConnectionSettings {
  return {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // Ours knows what to do when it fails.
    autoResubscribe: false,
    commandTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    disconnectTimeout: DISCONNECT_MS,
    // The protocol of all versions of Redis and of the client, and one round trip less.
    protocol: 2,
    replyMapping: 'legacy',
    disableClientInfo: true,
    connectionName: 'escapement',
    // After a failover: the connection is to a server that is a replica now.
    reconnectOnError: isReadOnly,
  };
}

/** A client that connects when it is told to, and again and again after that. */
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

/** A client for one of the sentinels themselves, which connects when it is told to, and once. */
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

function quietRedis(options: ConnectionSettings): Redis {
  const client = withQuietStream(new Redis(options));
  client.on('error', (error: Error) => {
    if (isSelectRefused(error)) client.disconnect(true);
  });
  return client;
}

/** The database is not there, or not for this user: ioredis tells, and goes on in database 0. */
function isSelectRefused(error: Error): boolean {
  return (error as Error & { command?: { name?: unknown } }).command?.name === 'select';
}

function sentinelTls(
  tls: ConnectionOptions | undefined,
): Pick<RedisOptions, 'sentinelTLS' | 'enableTLSForSentinelMode'> {
  return tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true };
}

/** Of a cluster whose nodes have these. */
export function clusterSettings(
  settings: ConnectionSettings,
): ClusterOptions & { readonly redisOptions: ConnectionSettings } {
  return {
    enableOfflineQueue: false,
    lazyConnect: true,
    clusterRetryStrategy: reconnectDelayMs,
    redisOptions: settings,
    // A certificate is for a name: it must not become an address first.
    ...(settings.tls === undefined ? {} : { dnsLookup: keepName }),
  };
}

const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, callback) => {
  callback(null, name);
};
