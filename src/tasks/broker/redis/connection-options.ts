import type { ConnectionOptions } from 'node:tls';
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { MAX_HOST_TIMEOUT_MS } from '../../../core/clock.ts';
import { withoutCredentials, wrongValue } from '../../../core/errors.ts';
import { integer, type OptionTable } from '../../../core/options.ts';
import { requireFunction, requireMethods, requireObject, requireString } from '../../../core/validate.ts';

/** State of the connection to Redis. */
export type RedisHealth = RedisReachable | RedisUnavailable;

/** The connection has not failed. */
export interface RedisReachable {
  /** Whether the first attempt is in progress, or the broker is connected. */
  readonly state: 'connecting' | 'ready';
}

/** The broker could not connect, or has lost its connection. It tries again and again. */
export interface RedisUnavailable {
  /** The connection has failed. */
  readonly state: 'unavailable';
  /** Error of the last attempt. */
  readonly cause: unknown;
}

/** Options of both kinds of connection. */
export interface RedisConnectionSettings {
  /**
   * How long an operation waits for Redis, in milliseconds: first for a connection if there is none, then for the answer.
   * After that it rejects with `ERR_BROKER_UNAVAILABLE`. At least 1, and at most 2 147 483 647 (24 days). @default 5_000
   */
  readonly timeoutMs?: number | undefined;
  /** Called once after each change; an error that it throws is an uncaught exception. */
  readonly onHealth?: ((health: RedisHealth) => void) | undefined;
}

/** A connection that the broker makes and closes. */
export interface RedisUrlOptions extends RedisConnectionSettings {
  /**
   * Where Redis is:
   *
   * - `redis://[user:password@]host[:6379][/db]`, or `rediss://` with TLS;
   * - `redis-socket://[user:password@]/path/of/socket[?db=0]`;
   * - `redis-sentinel://[user:password@]host[:26379],host…[/db]?master=name`, or `rediss-sentinel://` with TLS, to the
   *   sentinels and to the servers. User and password are those of the sentinels;
   * - `redis-cluster://[user:password@]host[:6379],host…`, or `rediss-cluster://` with TLS: some nodes, which list the others.
   *
   * In user, password and path every character except letters, digits and `-._~` is percent-encoded. asynq accepts the same URLs,
   * but ignores the user, and has no URL for clusters.
   *
   * @example 'redis://worker:s%40cret@redis.internal:6379/2'
   */
  readonly url: string;
  /** The user of the servers. @default that of the URL, except with sentinels */
  readonly username?: string | undefined;
  /** The password of the servers. @default that of the URL, except with sentinels */
  readonly password?: string | undefined;
  /** TLS options, such as certificates, for URLs with TLS. @default the certificates that Node trusts */
  readonly tls?: ConnectionOptions | undefined;
}

/** A connection that the program makes and closes. */
export interface RedisClientOptions extends RedisConnectionSettings {
  /**
   * A client of ioredis, 5.4 or later, without `keyPrefix`, `stringNumbers` and `enableAutoPipelining`. Set `maxRetriesPerRequest: 0` and
   * `enableOfflineQueue: false`, or an operation that has rejected may still happen much later. Notifications use a duplicate of the
   * client.
   */
  readonly client: Redis | Cluster;
}

/** How a broker connects to Redis. */
export type RedisConnectionOptions = RedisUrlOptions | RedisClientOptions;

export const CONNECTION_OPTIONS = {
  timeoutMs: [integer(1, MAX_HOST_TIMEOUT_MS), 5_000],
  onHealth: [requireFunction, undefined],
  url: [requireString, undefined],
  username: [requireString, undefined],
  password: [requireString, undefined],
  tls: [requireObject, undefined],
  client: [requireClient, undefined],
} satisfies OptionTable<RedisConnectionOptions>;

/** Where {@link RedisConnectionOptions} lead to. */
interface ConnectionPlan {
  readonly timeoutMs: number;
  readonly onHealth: ((health: RedisHealth) => void) | undefined;
  readonly source: { readonly client: Redis | Cluster } | { readonly server: ServerPlan };
}

/** The servers, and the user. */
export interface ServerPlan {
  readonly address: RedisAddress;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: ConnectionOptions | undefined;
}

/** @param options - each is valid. @throws TypeError - the URL is not valid, or the options do not go together. */
export function planConnection(options: RedisConnectionOptions): ConnectionPlan {
  const { timeoutMs = CONNECTION_OPTIONS.timeoutMs[1], onHealth } = options;
  const { client, username, password, tls } = options as Partial<RedisClientOptions & RedisUrlOptions>;
  if (client === undefined)
    return { timeoutMs, onHealth, source: { server: serverPlan(options as RedisUrlOptions) } };
  if (hasUrl(options)) throw wrongValue('options', 'either a url or a client', options);
  for (const [name, value] of Object.entries({ username, password, tls }))
    if (value !== undefined) throw wrongValue(`options.${name}`, 'absent beside a client', typeof value);
  return { timeoutMs, onHealth, source: { client } };
}

/** An option that is undefined counts as absent, as everywhere. */
export function hasUrl(options: RedisConnectionOptions): options is RedisUrlOptions {
  return (options as Partial<RedisUrlOptions>).url !== undefined;
}

const CLIENT_METHODS = ['sendCommand', 'evalsha', 'duplicate', 'subscribe', 'disconnect', 'on'];

function requireClient(argument: string, client: unknown): void {
  requireMethods(argument, 'a Redis or Cluster of ioredis', CLIENT_METHODS, client);
  const { options } = client as { options: RedisOptions & ClusterOptions };
  const { keyPrefix = '', stringNumbers, enableAutoPipelining } = { ...options.redisOptions, ...options };
  // Scripts build keys from other keys: only some of them would have the prefix.
  if (keyPrefix !== '') throw wrongValue(`${argument}.options.keyPrefix`, 'empty', keyPrefix);
  // A text in the reply of a script would be an id.
  if (stringNumbers === true) throw wrongValue(`${argument}.options.stringNumbers`, 'false', true);
  // ioredis would throw at a script, in a turn of its own.
  if (enableAutoPipelining === true)
    throw wrongValue(`${argument}.options.enableAutoPipelining`, 'false', true);
}

function serverPlan({ url, username, password, tls }: RedisUrlOptions): ServerPlan {
  const address = parseRedisUrl('options.url', url);
  if (tls !== undefined && !address.isTls)
    throw wrongValue('options.tls', 'absent unless the URL begins with rediss', tls);
  const ofUrl: RedisCredentials = address.kind === 'sentinel' ? {} : address;
  return {
    address,
    username: username ?? ofUrl.username,
    password: password ?? ofUrl.password,
    tls: address.isTls ? (tls ?? {}) : undefined,
  };
}

/** A host name or an IP address, without brackets. */
export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

/** User and password of a URL, decoded; one that is empty is absent. */
interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

/** A parsed URL. With sentinels, the credentials are those of the sentinels: the servers have others. */
type RedisAddress = RedisCredentials & { readonly isTls: boolean } & RedisServers;

type RedisServers =
  | { readonly kind: 'server'; readonly db: number; readonly server: RedisHost }
  | { readonly kind: 'socket'; readonly db: number; readonly path: string }
  | {
      readonly kind: 'sentinel';
      readonly db: number;
      readonly sentinels: readonly RedisHost[];
      readonly master: string;
    }
  | { readonly kind: 'cluster'; readonly nodes: readonly RedisHost[] };

/** Schemes of the URLs of Redis. */
export const REDIS_SCHEMES: readonly string[] = [
  ...['redis', 'rediss', 'redis-socket', 'redis-sentinel', 'rediss-sentinel'],
  ...['redis-cluster', 'rediss-cluster'],
];

/** The parts of a URL before decoding. Node's own parser supports one host only. */
interface RedisUrlParts {
  readonly scheme: string;
  /** Undefined without an `@`. */
  readonly userInfo: string | undefined;
  readonly hosts: string;
  /** With the slash; empty if there is none. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
}

/** Hosts hold no `@` and a path begins with `/`, so that each part ends in one way only: a long URL costs O(n). */
const PARTS = /^([a-z-]+):\/\/(?:([^/?#]*)@)?([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/iu;

/** Splits `scheme://user:password@hosts/path?query`; undefined for another text. The scheme is as it was written. */
export function splitRedisUrl(url: string): RedisUrlParts | undefined {
  const match = PARTS.exec(url);
  if (match === null) return undefined;
  const [, scheme = '', userInfo, hosts = '', path = '', query = ''] = match;
  return { scheme, userInfo, hosts, path, query };
}

const SERVER_PORT = 6379;
const SENTINEL_PORT = 26_379;
const LAST_PORT = 65_535;

const SCHEMES = `a URL that begins with ${REDIS_SCHEMES.map((scheme) => `${scheme}://`).join(', ')}`.replace(
  /, (?=[^,]*$)/,
  ' or ',
);

/** Returns the error for a URL that is not valid. */
type Fail = (requirement: string) => Error;

/**
 * Parses a URL of Redis: those of asynq, with the same meaning, and those of clusters.
 *
 * @throws TypeError - it is not valid; the message contains neither user name nor password.
 */
export function parseRedisUrl(argument: string, url: unknown): RedisAddress {
  requireString(argument, url);
  const fail: Fail = (requirement) => wrongValue(argument, requirement, withoutCredentials(url));
  const parts = splitRedisUrl(url);
  if (parts === undefined || !REDIS_SCHEMES.includes(parts.scheme)) throw fail(SCHEMES);
  const isTls = parts.scheme.startsWith('rediss');
  return { isTls, ...credentialsOf(parts, fail), ...serversOf(parts, fail) };
}

function serversOf({ scheme, hosts, path, query }: RedisUrlParts, fail: Fail): RedisServers {
  const kind = scheme.replace(/^rediss?-?/u, '');
  const parameter = kind === 'socket' ? 'db' : kind === 'sentinel' ? 'master' : undefined;
  const given = new URLSearchParams(query);
  // A misspelt parameter would be ignored silently.
  for (const name of given.keys()) if (name !== parameter) throw fail(`a URL without ?${name}=`);
  const value = given.get(parameter ?? '') ?? '';
  const db = databaseOf(kind === 'socket' ? value : path.slice(1), fail);
  const hostsOf = (port: number): RedisHost[] => hosts.split(',').map((host) => hostOf(host, port, fail));
  if (kind === 'socket') {
    const file = decode(path, fail);
    if (hosts !== '' || file.length < 2) throw fail('a URL with an absolute path after redis-socket://');
    return { kind, db, path: file };
  }
  if (kind === 'sentinel') {
    if (value === '') throw fail('a URL that names the primary, as in ?master=mymaster');
    return { kind, db, sentinels: hostsOf(SENTINEL_PORT), master: value };
  }
  if (kind === 'cluster') {
    if (db !== 0) throw fail('a URL without a database: a cluster has only 0');
    return { kind, nodes: hostsOf(SERVER_PORT) };
  }
  return { kind: 'server', db, server: hostOf(hosts === '' ? 'localhost' : hosts, SERVER_PORT, fail) };
}

function credentialsOf({ userInfo }: RedisUrlParts, fail: Fail): RedisCredentials {
  if (userInfo === undefined) return {};
  const colon = userInfo.indexOf(':');
  const username = decode(colon < 0 ? userInfo : userInfo.slice(0, colon), fail);
  const password = colon < 0 ? '' : decode(userInfo.slice(colon + 1), fail);
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function hostOf(text: string, defaultPort: number, fail: Fail): RedisHost {
  const match = /^(?:\[([^\]]+)\]|([^:[\],]+))(?::(\d+))?$/u.exec(text);
  const port = Number(match?.[3] ?? defaultPort);
  const host = decode(match?.[1] ?? match?.[2] ?? '', fail);
  if (host === '' || port < 1 || port > LAST_PORT)
    throw fail('a URL with hosts as in host, host:6379 or [::1]:6379');
  return { host, port };
}

function databaseOf(text: string, fail: Fail): number {
  if (!/^\d{0,9}$/u.test(text)) throw fail('a URL with the number of a database');
  return Number(text);
}

function decode(text: string, fail: Fail): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('a URL whose percent signs are encoded as %25');
  }
}
