import { requireRedisProgram } from './find-redis.ts';
import { programOnPath, thisSystem, type System } from './system.ts';

/** A package manager, and the names that it may have Redis under, the best one first. */
interface PackageManager {
  readonly program: string;
  /** What brings its list up to date, when it does not know a package; nothing if it does so by itself. */
  readonly update?: readonly string[];
  readonly install: readonly string[];
  readonly packages: readonly string[];
  /** It refuses to run as root, and needs no rights. */
  readonly isOfUser?: boolean;
}

const PACKAGE_MANAGERS: readonly PackageManager[] = [
  {
    program: 'apt-get',
    update: ['update'],
    install: ['install', '--yes', '--no-install-recommends'],
    packages: ['redis-server', 'valkey-server'],
  },
  { program: 'dnf', install: ['install', '--assumeyes'], packages: ['valkey', 'redis'] },
  { program: 'yum', install: ['install', '--assumeyes'], packages: ['redis', 'valkey'] },
  { program: 'apk', install: ['add', '--no-cache'], packages: ['redis', 'valkey'] },
  { program: 'zypper', install: ['--non-interactive', 'install'], packages: ['redis', 'valkey'] },
  {
    program: 'pacman',
    install: ['--sync', '--refresh', '--needed', '--noconfirm'],
    packages: ['valkey', 'redis'],
  },
  { program: 'brew', install: ['install'], packages: ['redis', 'valkey'], isOfUser: true },
];

/** apt-get must not prompt for the configuration of a package. */
const UNATTENDED = { DEBIAN_FRONTEND: 'noninteractive' };

/**
 * `npm run test:setup`: installs Redis or Valkey with the package manager of the system, as root or with a `sudo` that asks
 * for no password.
 *
 * @returns the path of the server program.
 * @throws Error - it could not be installed; its message says what to do.
 */
export async function installRedis(system: System = thisSystem): Promise<string> {
  await install(system);
  return requireRedisProgram(system);
}

async function install(system: System): Promise<void> {
  const manager = PACKAGE_MANAGERS.find(({ program }) => programOnPath(program, system) !== undefined);
  if (manager === undefined) return;
  const rights = await rightsFor(manager, system);
  if (rights === undefined) return;
  const run = (args: readonly string[]): Promise<boolean> =>
    runWith(system, rights, [manager.program, ...args]);

  system.say(`installing Redis with ${manager.program}`);
  if (await installOneOf(manager, run)) return;
  if (manager.update !== undefined && (await run(manager.update))) await installOneOf(manager, run);
}

async function installOneOf(
  { install, packages }: PackageManager,
  run: (args: readonly string[]) => Promise<boolean>,
): Promise<boolean> {
  for (const name of packages) {
    if (await run([...install, name])) return true;
  }
  return false;
}

/** What a command begins with so that it has the rights it needs; `undefined` if there is no way without a question. */
async function rightsFor(
  { isOfUser = false }: PackageManager,
  system: System,
): Promise<string[] | undefined> {
  if (isOfUser) return system.isRoot ? undefined : [];
  if (system.isRoot) return [];
  if (programOnPath('sudo', system) === undefined) return undefined;
  const sudo = ['sudo', '--non-interactive'];
  return (await runWith(system, sudo, ['true'])) ? sudo : undefined;
}

function runWith(system: System, rights: readonly string[], command: readonly string[]): Promise<boolean> {
  // `env` behind `sudo`, which keeps no variable of ours.
  const settings = Object.entries(UNATTENDED).map(([name, value]) => `${name}=${value}`);
  const [program = '', ...args] = [...rights, 'env', ...settings, ...command];
  return system.run(program, args);
}
