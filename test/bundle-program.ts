import { buildSync } from 'esbuild';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folderOfFile } from './folder.ts';

/** Packages that are CommonJS require the modules of Node. */
const REQUIRE = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`;

/**
 * Bundles a program in TypeScript with everything that it imports, for tests that start it again and again: a process that loads the
 * sources file by file, through tsx, needs a second or two of a processor before it does anything.
 *
 * @returns the path of the bundle, which `node` runs. It is removed after the tests of the file.
 */
export function bundleProgram(program: URL): string {
  const folder = folderOfFile();
  const outfile = join(folder, 'program.mjs');
  const settings = {
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
  } as const;
  buildSync({ ...settings, entryPoints: [fileURLToPath(program)], outfile, banner: { js: REQUIRE } });
  return outfile;
}
