import { programOnPath, thisSystem, type System } from './system.ts';

/** Where the tests have their Redis from. */
export type FoundRedis =
  /** `REDIS_URL`: a server that belongs to somebody else, see `freshDatabase`. */
  | { readonly url: string }
  /** The path of `redis-server` or `valkey-server`: the tests start their own. */
  | { readonly program: string };

const PROGRAMS = ['redis-server', 'valkey-server'];

export const WHAT_TO_INSTALL =
  '`npm run test:setup` installs Redis 6.2 or later, or Valkey, with the package manager of the system. Or put `redis-server` or ' +
  '`valkey-server` on the PATH yourself (`apt-get install redis-server`, `dnf install valkey`, `apk add redis`, ' +
  '`brew install redis`), or set REDIS_URL to an empty database that the tests may write to.';

/** Finds Redis by `REDIS_URL` or on the PATH. Installs nothing. */
export function findRedis(system: Pick<System, 'env'> = thisSystem): FoundRedis | undefined {
  const url = system.env['REDIS_URL'] ?? '';
  if (url !== '') return { url };
  const program = redisOnPath(system);
  return program === undefined ? undefined : { program };
}

/**
 * Returns the path of a server program, for servers that a test starts and stops, also where `REDIS_URL` is set.
 *
 * @throws Error - it is not on the PATH; its message says what to install.
 */
export function requireRedisProgram(system: Pick<System, 'env'> = thisSystem): string {
  const program = redisOnPath(system);
  if (program === undefined) throw new Error(`Redis is not on the PATH. ${WHAT_TO_INSTALL}`);
  return program;
}

function redisOnPath(system: Pick<System, 'env'>): string | undefined {
  return PROGRAMS.map((program) => programOnPath(program, system)).find((path) => path !== undefined);
}
