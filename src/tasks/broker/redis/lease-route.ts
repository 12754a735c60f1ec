import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import { planConnection, type RedisConnectionOptions, type RedisUrlOptions } from './connection-options.ts';
import { RedisConnection } from './connection.ts';
import { clusterSettings, commonSettings, type RedisClient } from './make-client.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';

/** What says where a client that was passed in goes, and as whom. */
const WHERE = [
  ...([
    'host',
    'port',
    'path',
    'family',
    'db',
    'username',
    'password',
    'tls',
    'keepAlive',
    'noDelay',
  ] as const),
  ...(['sentinels', 'name', 'sentinelUsername', 'sentinelPassword', 'sentinelTLS'] as const),
  ...(['enableTLSForSentinelMode', 'natMap'] as const),
];

type Where = Pick<RedisOptions, (typeof WHERE)[number]>;

/** A way to Redis that can be sent to a thread, if there are no functions in it. */
export type LeaseRoute =
  | { readonly kind: 'url'; readonly options: RedisUrlOptions }
  | { readonly kind: 'server'; readonly where: Where; readonly timeoutMs: number }
  | {
      readonly kind: 'cluster';
      readonly nodes: readonly Where[];
      readonly where: Where;
      readonly natMap: ClusterOptions['natMap'];
      readonly timeoutMs: number;
    };

/** @throws Error - the client that was passed in goes a way that nobody else can. */
export function leaseRouteOf(options: RedisConnectionOptions): LeaseRoute {
  if ('url' in options)
    return { kind: 'url', options: plain(options, ['url', 'username', 'password', 'tls', 'timeoutMs']) };
  const { timeoutMs } = planConnection(options);
  const { client } = options;
  if (!isClusterClient(client)) return { kind: 'server', where: whereOf(client.options), timeoutMs };
  const nodes = client.nodes().map((node) => plain(node.options, ['host', 'port']));
  if (nodes.length === 0) throw new Error('no node of the cluster is known');
  const { redisOptions = {}, natMap } = client.options;
  return { kind: 'cluster', nodes, where: whereOf(redisOptions), natMap, timeoutMs };
}

/** Connects when it is asked for something. */
export function connect(route: LeaseRoute): RedisConnection {
  if (route.kind === 'url') return new RedisConnection(route.options);
  return new RedisConnection({ client: clientOf(route), timeoutMs: route.timeoutMs });
}

function clientOf(route: Exclude<LeaseRoute, { kind: 'url' }>): RedisClient {
  const settings = {
    ...commonSettings(route.timeoutMs),
    retryStrategy: reconnectDelayMs,
    sentinelRetryStrategy: reconnectDelayMs,
    lazyConnect: true,
    ...route.where,
  };
  if (route.kind === 'server') return new Redis(settings);
  const { nodes, natMap } = route;
  return new Cluster([...nodes], {
    ...clusterSettings(settings),
    ...(natMap === undefined ? {} : { natMap }),
  });
}

function whereOf(options: RedisOptions): Where {
  if (options.Connector !== undefined) throw new Error('the client has a connector of its own');
  return plain(options, WHERE);
}

/** What somebody has said of these. */
function plain<T extends object, K extends keyof T>(options: T, names: readonly K[]): Pick<T, K> {
  const said = names.filter((name) => options[name] !== undefined && options[name] !== null);
  return Object.fromEntries(said.map((name) => [name, options[name]])) as Pick<T, K>;
}

function isClusterClient(client: RedisClient): client is Cluster {
  return client.isCluster;
}
