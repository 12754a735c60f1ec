import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { BackOff, type BackOffOptions } from '../../../core/back-off.ts';
import { inOwnTurn } from '../../../core/own-turn.ts';
import {
  CONNECTION_OPTIONS,
  hasUrl,
  type RedisConnectionOptions,
  type RedisHost,
  type RedisUrlOptions,
  type ServerPlan,
} from './connection-options.ts';
import { isReadOnly, isTimeout } from './redis-errors.ts';

/* How clients of ioredis are made. Only the files of a connection use this one. */

export type RedisClient = Redis | Cluster;

export function isClusterClient(client: RedisClient): client is Cluster {
  return client.isCluster;
}

/** Replies are plain values, whatever the version of the protocol. */
type ConnectionSettings = Omit<RedisOptions, 'replyMapping'> & { readonly replyMapping: 'legacy' };

/** Delays between attempts to connect. Most connections that are lost are back at once; a Redis that is back is noticed within 3 s. */
export const RECONNECT: BackOffOptions = { firstMs: 50, longestMs: 3_000 };

/** How long a connection exists, in milliseconds, until its loss is a new one. */
const LASTING_MS = 1_000;

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
  const { address, tls } = plan;
  const settings: ConnectionSettings = {
    ...commonSettings(timeoutMs),
    retryStrategy: reconnectDelays(),
    lazyConnect: true,
    ...pickSet(plan, ['username', 'password', 'tls']),
  };
  switch (address.kind) {
    case 'server':
      return quietRedis({ ...settings, ...address.server, db: address.db });
    case 'socket':
      return quietRedis({ ...settings, path: address.path, db: address.db });
    case 'sentinel':
      return quietRedis({
        ...settings,
        ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
        db: address.db,
        name: address.master,
        sentinels: [...address.sentinels],
        sentinelCommandTimeout: timeoutMs,
        sentinelRetryStrategy: reconnectDelays(),
        ...(address.username === undefined ? {} : { sentinelUsername: address.username }),
        ...(address.password === undefined ? {} : { sentinelPassword: address.password }),
      });
    case 'cluster': {
      const cluster = new Cluster([...address.nodes], clusterSettings(settings));
      cluster.on('+node', mended);
      return cluster;
    }
  }
}

/**
 * Returns the delays before attempts to connect, which ioredis counts from 1 after each loss. They go on growing unless the connection
 * has lasted: one to a replica, for example, ends at its first write.
 */
function reconnectDelays(): (attempt: number) => number {
  const backOff = new BackOff(RECONNECT);
  let triedAtMs = -Infinity;
  return (attempt) => {
    const nowMs = performance.now();
    if (attempt === 1 && nowMs - triedAtMs > LASTING_MS) backOff.reset();
    const delayMs = backOff.next();
    triedAtMs = nowMs + delayMs;
    return delayMs;
  };
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
    ...pickSet(address, ['username', 'password']),
    ...(tls === undefined ? {} : { tls }),
  });
}

function clusterSettings(
  settings: ConnectionSettings,
): ClusterOptions & { readonly redisOptions: ConnectionSettings } {
  return {
    enableOfflineQueue: false,
    lazyConnect: true,
    clusterRetryStrategy: reconnectDelays(),
    redisOptions: settings,
    // A certificate is for a name, which must not be resolved to an address first.
    ...(settings.tls === undefined ? {} : { dnsLookup: keepName }),
  };
}

const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, callback) => {
  callback(null, name);
};

function quietRedis(options: ConnectionSettings): Redis {
  const client = mended(new Redis(options));
  client.on('error', (error: Error) => {
    if (isSelectRefused(error)) client.disconnect(true);
  });
  return client;
}

/** The database does not exist, or this user may not use it: ioredis reports that and continues in database 0. */
function isSelectRefused(error: Error): boolean {
  return (error as Error & { command?: { name?: unknown } }).command?.name === 'select';
}

/** Mends two faults of a client of ioredis: see below. @returns the client. */
export function mended<C extends Redis>(client: C): C {
  handleSecondErrors(client);
  readBeforeTimeouts(client);
  return client;
}

/**
 * Lets the sockets of a client fail more than once. ioredis handles only the first error of each, and a second one, as when both
 * sides abort a TLS handshake, would be an uncaught exception. No event comes after every first error and before every second
 * one, so the handler is added when the client gets its socket.
 */
function handleSecondErrors(client: Redis): void {
  let { stream } = client;
  Object.defineProperty(client, 'stream', {
    configurable: true,
    enumerable: true,
    get: () => stream,
    set: (next: Redis['stream']) => {
      stream = next;
      next.on('error', () => undefined); // ioredis reports the first one
    },
  });
}

/**
 * Lets a command time out only after the replies were read that have arrived. After a handler has blocked the event loop, timeouts fire
 * first: each reply that came meanwhile would be lost, and with it the connection and the tasks in the reply.
 */
function readBeforeTimeouts(client: Redis): void {
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, stream) => {
    const { reject } = command;
    command.reject = (error) => {
      if (!isTimeout(error)) reject(error);
      else
        inOwnTurn(() => {
          reject(error); // does nothing if the command was answered
        });
    };
    return send(command, stream);
  };
}

/** The options of a client that determine the server and the user. */
const WHERE = [
  ...(['host', 'port', 'path', 'family', 'db', 'username', 'password', 'tls'] as const),
  ...(['keepAlive', 'noDelay'] as const),
  ...(['sentinels', 'name', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'] as const),
  ...(['enableTLSForSentinelMode', 'natMap'] as const),
];

type Where = Partial<Pick<RedisOptions, (typeof WHERE)[number]>>;

/** How a broker connects to Redis. It can be sent to a thread unless it contains functions. */
export type ConnectionRoute = RedisUrlOptions | ClientRoute;

interface ClientRoute {
  readonly timeoutMs: number | undefined;
  readonly where: Where;
  /** Nodes of a cluster; undefined for one server. */
  readonly nodes?: readonly Where[];
  readonly natMap?: ClusterOptions['natMap'];
}

/** @throws Error - the client that was passed in connects in a way that cannot be copied. */
export function routeOf(options: RedisConnectionOptions): ConnectionRoute {
  if (hasUrl(options))
    return { url: options.url, ...pickSet(options, ['username', 'password', 'tls', 'timeoutMs']) };
  const { client, timeoutMs } = options;
  if (!isClusterClient(client)) return { timeoutMs, where: whereOf(client.options) };
  const nodes = client.nodes().map((node) => pickSet(node.options, ['host', 'port']));
  if (nodes.length === 0) throw new Error('the cluster client has no nodes');
  const { redisOptions = {}, natMap } = client.options;
  return { timeoutMs, where: whereOf(redisOptions), nodes, natMap };
}

/** Returns options that connect on that route. Called in the thread. */
export function optionsOfRoute(route: ConnectionRoute): RedisConnectionOptions {
  if ('url' in route) return route;
  const { timeoutMs = CONNECTION_OPTIONS.timeoutMs[1], where, nodes, natMap } = route;
  const settings = {
    ...commonSettings(timeoutMs),
    retryStrategy: reconnectDelays(),
    sentinelRetryStrategy: reconnectDelays(),
    lazyConnect: true,
    ...where,
  };
  if (nodes === undefined) return { client: new Redis(settings), timeoutMs };
  const clusterOptions = { ...clusterSettings(settings), ...(natMap === undefined ? {} : { natMap }) };
  return { client: new Cluster([...nodes], clusterOptions), timeoutMs };
}

function whereOf(options: RedisOptions): Where {
  if (options.Connector !== undefined) throw new Error('the client has a connector of its own');
  return pickSet(options, WHERE);
}

function pickSet<T extends object, K extends keyof T>(
  options: T,
  names: readonly K[],
): { -readonly [Name in K]?: NonNullable<T[Name]> } {
  const set = names.filter((name) => options[name] !== undefined && options[name] !== null);
  return Object.fromEntries(set.map((name) => [name, options[name]])) as ReturnType<typeof pickSet<T, K>>;
}
