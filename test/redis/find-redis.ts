import { installRedis } from './install-redis.ts';
import { programOnPath, thisSystem, type System } from './system.ts';

/** Where the tests have their Redis from. */
export type FoundRedis =
  /** Somebody has told us: it is not ours, see `freshDatabase`. */
  | { readonly url: string }
  /** The path of `redis-server` or `valkey-server`: we start our own. */
  | { readonly program: string };

const PROGRAMS = ['redis-server', 'valkey-server'];

/** One message, whatever has gone wrong on the way. */
const WHAT_TO_INSTALL =
  'The tests need Redis 6.2 or later, or Valkey. Install it, so that `redis-server` or `valkey-server` is on the PATH ' +
  '(`apt-get install redis-server`, `dnf install valkey`, `apk add redis`, `brew install redis`), ' +
  'or set REDIS_URL to an empty database that the tests may write to.';

/**
 * Finds Redis by `REDIS_URL`, or on the PATH, or installs it.
 *
 * @throws Error - there is none; its message says what to install.
 */
export async function findRedis(system: System = thisSystem): Promise<FoundRedis> {
  const url = system.env['REDIS_URL'] ?? '';
  if (url !== '') return { url };
  const program = redisOnPath(system);
  if (program !== undefined) return { program };
  await installRedis(system);
  return { program: requireRedisProgram(system) };
}

/**
 * For servers that a test starts, also where `REDIS_URL` is set: nobody wants that one stopped.
 *
 * @throws Error - it is not on the PATH; its message says what to install.
 */
export function requireRedisProgram(system: Pick<System, 'env'> = thisSystem): string {
  const program = redisOnPath(system);
  if (program === undefined) throw new Error(WHAT_TO_INSTALL);
  return program;
}

function redisOnPath(system: Pick<System, 'env'>): string | undefined {
  return PROGRAMS.map((program) => programOnPath(program, system)).find((path) => path !== undefined);
}
