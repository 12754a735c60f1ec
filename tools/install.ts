/** `tsx tools/install.ts FOLDER…` installs the packages of each folder that has a lock file of its own. */
import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
/** A peer dependency is one of the root's packages. */
const INSTALL = 'npm ci --omit=peer --no-audit --no-fund --loglevel=error';

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
  readonly optional?: boolean;
  readonly peer?: boolean;
}

/** Installs what the lock file of a folder lists. Does nothing, and needs no network, if it is installed. */
export function installPackages(folder: string): void {
  const path = join(ROOT, folder);
  if (isInstalled(path)) return;
  process.stderr.write(`Installing the packages of ${folder}/, once\n`);
  try {
    execSync(INSTALL, { cwd: path, stdio: ['ignore', 'ignore', 'inherit'] });
  } catch (cause) {
    throw new Error(`cannot install the packages of ${folder}/: '${INSTALL}' failed there`, { cause });
  }
}

/** npm writes the second file when it has installed everything. */
export function isInstalled(path: string): boolean {
  const wanted = packagesIn(join(path, 'package-lock.json'));
  const found = packagesIn(join(path, 'node_modules/.package-lock.json'));
  return Object.entries(wanted).every(([name, { version, optional = false, peer = false }]) => {
    return name === '' || optional || peer || found[name]?.version === version;
  });
}

function packagesIn(lockFile: string): Lock['packages'] {
  try {
    return (JSON.parse(readFileSync(lockFile, 'utf8')) as Lock).packages;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

if (process.argv[1] === import.meta.filename) {
  try {
    process.argv.slice(2).forEach(installPackages);
  } catch (error) {
    process.stderr.write(`error: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
