/** What is measured is the library as its users install it: bundled by the same settings, into a folder of its own. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const TSUP = join(ROOT, 'node_modules/tsup/dist/cli-default.js');

/** Builds the library into `bench/dist`, without declaration files: `tsconfig.build.json` resolves `escapement` to it. */
export function buildLibrary(): void {
  if (measuresSources()) {
    process.stderr.write('warning: measuring the sources, not a build; use `npm run bench`\n');
    return;
  }
  process.stderr.write('Building the library\n');
  const words = ['--no-dts', '--format', 'esm', '--out-dir', 'bench/dist'];
  execFileSync(process.execPath, [TSUP, ...words], { cwd: ROOT, stdio: 'inherit' });
}

/** The root's `tsconfig.json` resolves it to the sources, and the loader of those wraps every function, to keep its name. */
function measuresSources(): boolean {
  try {
    return import.meta.resolve('escapement').endsWith('/src/index.ts');
  } catch {
    return false; // not built yet
  }
}
