import { execFileSync } from 'node:child_process';
import { programOnPath, thisSystem, type System } from './system.ts';

/** Where the tests have their Redis from. */
export type FoundRedis =
  /** `REDIS_URL`: a server that the tests have not started, see `freshDatabase`. */
  | { readonly url: string }
  /** The path of `redis-server` or `valkey-server`: the tests start their own. */
  | { readonly program: string }
  /** Neither, and why: a sentence. */
  | { readonly lack: string };

const PROGRAMS = ['redis-server', 'valkey-server'];

/** Scripts of ours and of asynq need it. Valkey's own numbers are above it. */
const OLDEST = [6, 2] as const;

export const WHAT_TO_INSTALL =
  '`npm run test:setup` installs Redis 6.2 or later, or Valkey, with the package manager of the system. Or put `redis-server` or ' +
  '`valkey-server` on the PATH yourself (`apt-get install redis-server`, `dnf install valkey`, `apk add redis`, ' +
  '`brew install redis`), or set REDIS_URL to an empty database that the tests may write to.';

/** Finds Redis by `REDIS_URL` or on the PATH. Installs nothing. */
export function findRedis(system: Pick<System, 'env'> = thisSystem): FoundRedis {
  const url = system.env['REDIS_URL'] ?? '';
  return url === '' ? redisOnPath(system) : { url };
}

/**
 * Returns the path of a server program, for servers that a test starts and stops, also where `REDIS_URL` is set.
 *
 * @throws Error - it is not on the PATH, or too old; the message names the program to install.
 */
export function requireRedisProgram(system: Pick<System, 'env'> = thisSystem): string {
  const found = redisOnPath(system);
  if ('lack' in found) throw new Error(`${found.lack} ${WHAT_TO_INSTALL}`);
  return found.program;
}

/** @returns why a server of that version cannot be used; undefined if it can. */
export function lackOf(server: string, version: string): string | undefined {
  const [major = 0, minor = 0] = (/\d+\.\d+/.exec(version)?.[0] ?? '').split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `The tests need Redis ${OLDEST.join('.')} or later, or Valkey. ${server} is '${version}'.`;
}

function redisOnPath(system: Pick<System, 'env'>): Exclude<FoundRedis, { url: string }> {
  let lack: string | undefined;
  for (const name of PROGRAMS) {
    const program = programOnPath(name, system);
    if (program === undefined) continue;
    const wrong = lackOf(program, versionOf(program));
    if (wrong === undefined) return { program };
    lack ??= wrong;
  }
  return { lack: lack ?? 'Redis is not on the PATH.' };
}

function versionOf(program: string): string {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch (error) {
    return (error as Error).message;
  }
}
