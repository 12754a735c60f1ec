import type { ConnectionOptions } from 'node:tls';
import type { Cluster, Redis } from 'ioredis';
import { wrongValue } from '../../../core/errors.ts';
import {
  requireFunction,
  requireIntegerAtLeast,
  requireMethods,
  requireObject,
  type OptionNames,
} from '../../../core/validate.ts';
import { parseRedisUrl, type RedisAddress, type RedisCredentials } from './redis-url.ts';

/** How the way to Redis is. */
export type RedisHealth = RedisReachable | RedisUnavailable;

/** Nothing is known to be wrong. */
export interface RedisReachable {
  /** Not there yet, or there. */
  readonly state: 'connecting' | 'ready';
}

/** Not there, or not any more; it is tried again and again. */
export interface RedisUnavailable {
  /** That it is so. */
  readonly state: 'unavailable';
  /** Why, as far as it is known. */
  readonly cause: unknown;
}

/** What both ways to have a connection know. */
export interface RedisConnectionSettings {
  /**
   * How long an operation waits for Redis, in milliseconds: first for a connection if there is none, then for the answer.
   * After that it rejects with `ERR_BROKER_UNAVAILABLE`. At least 1. @default 5_000
   */
  readonly timeoutMs?: number;
  /** Is told of each change once, after it has happened; what it throws is an uncaught exception. */
  readonly onHealth?: (health: RedisHealth) => void;
}

/** A connection that we make and close. */
export interface RedisUrlOptions extends RedisConnectionSettings {
  /**
   * - `redis://[user:password@]host[:6379][/db]`, or `rediss://` with TLS;
   * - `redis-socket://[user:password@]/path/of/socket[?db=0]`;
   * - `redis-sentinel://[user:password@]host[:26379],host…[/db]?master=name`, or `rediss-sentinel://` with TLS, to the
   *   sentinels and to the servers. User and password are those of the sentinels;
   * - `redis-cluster://[user:password@]host[:6379],host…`, or `rediss-cluster://` with TLS: some nodes, which tell the others.
   *
   * What else than letters, digits and `-._~` is in user, password and path is percent-encoded. asynq means the same by them,
   * but ignores the user, and has none for clusters.
   *
   * @example 'redis://worker:s%40cret@redis.internal:6379/2'
   */
  readonly url: string;
  /** The user of the servers. @default that of the URL, except with sentinels */
  readonly username?: string;
  /** The password of the servers. @default that of the URL, except with sentinels */
  readonly password?: string;
  /** Certificates and so on, for URLs with TLS. @default what Node trusts */
  readonly tls?: ConnectionOptions;
}

/** A connection that somebody else makes and closes. */
export interface RedisClientOptions extends RedisConnectionSettings {
  /**
   * A client of ioredis, 5.4 or later, without `keyPrefix`. Set `maxRetriesPerRequest: 0` and `enableOfflineQueue: false`, or
   * what was given up may still happen long afterwards. Hints come over a duplicate of it.
   */
  readonly client: Redis | Cluster;
}

/** How a broker gets to Redis. */
export type RedisConnectionOptions = RedisUrlOptions | RedisClientOptions;

export const CONNECTION_OPTIONS: OptionNames<RedisConnectionOptions> = {
  ...{ timeoutMs: true, onHealth: true, url: true, username: true, password: true, tls: true, client: true },
};

/** The same, looked through. */
export interface ConnectionPlan {
  readonly timeoutMs: number;
  readonly onHealth: ((health: RedisHealth) => void) | undefined;
  readonly source: { readonly client: Redis | Cluster } | { readonly server: ServerPlan };
}

/** Where to, and as whom. */
export interface ServerPlan {
  readonly address: RedisAddress;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly tls: ConnectionOptions | undefined;
}

const DEFAULT_TIMEOUT_MS = 5_000;

/** @throws TypeError or RangeError - an option is wrong. */
export function planConnection(options: RedisConnectionOptions): ConnectionPlan {
  requireObject('options', options);
  const { timeoutMs = DEFAULT_TIMEOUT_MS, onHealth } = options;
  requireIntegerAtLeast('options.timeoutMs', 1, timeoutMs);
  if (onHealth !== undefined) requireFunction('options.onHealth', onHealth);
  const source = 'client' in options ? clientOf(options) : { server: serverOf(options) };
  return { timeoutMs, onHealth, source };
}

const CLIENT_METHODS = ['sendCommand', 'evalsha', 'duplicate', 'subscribe', 'disconnect', 'on'];

function clientOf(options: RedisClientOptions): { readonly client: Redis | Cluster } {
  const { client } = options;
  if ('url' in options) throw wrongValue('options', 'either a url or a client', options);
  requireMethods('options.client', 'a Redis or Cluster of ioredis', CLIENT_METHODS, client);
  const { keyPrefix = '' } = client.options;
  // Scripts make keys from others: half of them would have the prefix.
  if (keyPrefix !== '') throw wrongValue('options.client.options.keyPrefix', 'empty', keyPrefix);
  return { client };
}

function serverOf({ url, username, password, tls }: RedisUrlOptions): ServerPlan {
  const address = parseRedisUrl('options.url', url);
  if (tls !== undefined) {
    requireObject('options.tls', tls);
    if (!address.isTls)
      throw wrongValue('options.tls', 'absent, or the URL one that begins with rediss', tls);
  }
  const ofUrl: RedisCredentials = address.kind === 'sentinel' ? {} : address;
  return {
    address,
    username: username ?? ofUrl.username,
    password: password ?? ofUrl.password,
    tls: address.isTls ? (tls ?? {}) : undefined,
  };
}
