/** Schemes of the URLs of Redis. */
export const REDIS_SCHEMES: readonly string[] = [
  ...['redis', 'rediss', 'redis-socket', 'redis-sentinel', 'rediss-sentinel'],
  ...['redis-cluster', 'rediss-cluster'],
];

/** The parts of a URL before decoding. Node's own parser supports one host only. */
export interface RedisUrlParts {
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
