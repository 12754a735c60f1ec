import { wrongType, wrongValue } from '../../../core/errors.ts';

/** A host name or an IP address, without brackets. */
export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

/** Percent signs decoded; what is empty is absent. */
export interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

/** What a URL says. Those of sentinels are the sentinels' own: the servers behind them have others. */
export type RedisAddress = RedisCredentials &
  (
    | { readonly kind: 'server'; readonly isTls: boolean; readonly db: number; readonly server: RedisHost }
    | { readonly kind: 'socket'; readonly isTls: false; readonly db: number; readonly path: string }
    | {
        readonly kind: 'sentinel';
        readonly isTls: boolean;
        readonly db: number;
        readonly sentinels: readonly RedisHost[];
        readonly master: string;
      }
    | { readonly kind: 'cluster'; readonly isTls: boolean; readonly nodes: readonly RedisHost[] }
  );

/** A URL, taken apart and nothing decoded. Node's own parser knows one host. */
interface UrlParts {
  readonly scheme: string;
  readonly userInfo: string | undefined;
  readonly hosts: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Hosts hold no `@` and a path begins with `/`, so that each part ends in one way only: a long URL costs O(n). */
const PARTS = /^([a-z-]+):\/\/(?:([^/?#]*)@)?([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/u;

const SERVER_PORT = 6379;
const SENTINEL_PORT = 26_379;
const LAST_PORT = 65_535;

const SCHEMES =
  'a URL that begins with redis://, rediss://, redis-socket://, redis-sentinel://, rediss-sentinel://, ' +
  'redis-cluster:// or rediss-cluster://';

/**
 * Takes a URL of Redis apart: those that asynq knows, with what they mean there, and those of clusters.
 *
 * @throws TypeError - it is none; the message shows neither user name nor password.
 */
export function parseRedisUrl(argument: string, url: unknown): RedisAddress {
  if (typeof url !== 'string') throw wrongType(argument, 'a string', url);
  const fail: Fail = (requirement) => wrongValue(argument, requirement, withoutCredentials(url));
  const parts = split(url, fail);
  const credentials = credentialsOf(parts, fail);
  switch (parts.scheme) {
    case 'redis':
    case 'rediss':
      return { ...credentials, ...serverOf(parts, fail) };
    case 'redis-socket':
      return { ...credentials, ...socketOf(parts, fail) };
    case 'redis-sentinel':
    case 'rediss-sentinel':
      return { ...credentials, ...sentinelsOf(parts, fail) };
    case 'redis-cluster':
    case 'rediss-cluster':
      return { ...credentials, ...clusterOf(parts, fail) };
    default:
      throw fail(SCHEMES);
  }
}

/** The error for a URL that is not what it has to be. */
type Fail = (requirement: string) => Error;

/**
 * As it may be shown. Whatever is before the last `@` may be a part of the password, if it was not encoded; and other clients take a
 * password in the query.
 */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z-]*:\/\/)?.*@/su, '$1***@').replace(/(password=)[^&#]*/giu, '$1***');
}

function split(url: string, fail: Fail): UrlParts {
  const match = PARTS.exec(url);
  if (match === null) throw fail(SCHEMES);
  const [, scheme = '', userInfo, hosts = '', path = '', query = ''] = match;
  return { scheme, userInfo, hosts, path, query: new URLSearchParams(query) };
}

function serverOf(parts: UrlParts, fail: Fail): RedisAddress {
  onlyQuery(parts, [], fail);
  const server = hostOf(parts.hosts === '' ? 'localhost' : parts.hosts, SERVER_PORT, fail);
  return { kind: 'server', isTls: isTls(parts), db: databaseOf(parts.path.slice(1), fail), server };
}

function socketOf(parts: UrlParts, fail: Fail): RedisAddress {
  onlyQuery(parts, ['db'], fail);
  const path = decode(parts.path, fail);
  if (parts.hosts !== '' || path.length < 2) throw fail('a URL with an absolute path after redis-socket://');
  return { kind: 'socket', isTls: false, db: databaseOf(parts.query.get('db') ?? '', fail), path };
}

function sentinelsOf(parts: UrlParts, fail: Fail): RedisAddress {
  onlyQuery(parts, ['master'], fail);
  const master = parts.query.get('master') ?? '';
  if (master === '') throw fail('a URL that names the primary, as in ?master=mymaster');
  const sentinels = parts.hosts.split(',').map((host) => hostOf(host, SENTINEL_PORT, fail));
  const db = databaseOf(parts.path.slice(1), fail);
  return { kind: 'sentinel', isTls: isTls(parts), db, sentinels, master };
}

function clusterOf(parts: UrlParts, fail: Fail): RedisAddress {
  onlyQuery(parts, [], fail);
  const db = databaseOf(parts.path.slice(1), fail);
  if (db !== 0) throw fail('a URL without a database: a cluster has only 0');
  const nodes = parts.hosts.split(',').map((host) => hostOf(host, SERVER_PORT, fail));
  return { kind: 'cluster', isTls: isTls(parts), nodes };
}

function isTls({ scheme }: UrlParts): boolean {
  return scheme.startsWith('rediss');
}

function credentialsOf({ userInfo }: UrlParts, fail: Fail): RedisCredentials {
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

/** A word that is misspelt would do nothing, silently. */
function onlyQuery({ query }: UrlParts, known: readonly string[], fail: Fail): void {
  for (const name of query.keys()) {
    if (!known.includes(name)) throw fail(`a URL without ?${name}=`);
  }
}

function decode(text: string, fail: Fail): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('a URL whose percent signs are encoded as %25');
  }
}
