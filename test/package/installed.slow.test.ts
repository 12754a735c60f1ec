import { buildSync } from 'esbuild';
import { execFileSync, spawnSync, type StdioOptions } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NPM_OPTIONS = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

interface PackedFile {
  readonly path: string;
}

/** An empty project with nothing but the packed package in it. */
const project = mkdtempSync(join(tmpdir(), 'escapement-package-'));
const installed = join(project, 'node_modules/escapement');
let packed: { filename: string; files: PackedFile[] };

beforeAll(() => {
  const words = ['pack', '--json', '--pack-destination', project, ...NPM_OPTIONS];
  const stdio: StdioOptions = ['ignore', 'pipe', 'ignore'];
  const output = execFileSync('npm', words, { cwd: ROOT, encoding: 'utf8', stdio });
  [packed] = JSON.parse(output) as [typeof packed];
  writeFileSync(join(project, 'package.json'), '{"name":"user","version":"1.0.0"}');
  const install = ['install', join(project, packed.filename), ...NPM_OPTIONS];
  execFileSync('npm', install, { cwd: project, stdio: 'ignore' });
});

afterAll(() => rmSync(project, { recursive: true }));

function writeProgram(name: string, source: string): string {
  const path = join(project, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, source);
  return path;
}

/** It may take as long as a test: on a busy machine TypeScript alone takes half a minute. */
function run(program: string, args: readonly string[]) {
  return spawnSync(program, args, { cwd: project, encoding: 'utf8', timeout: 120_000 });
}

it('the packed package holds the build, the documents and the licences, and nothing else', () => {
  const paths = packed.files.map(({ path }) => path);
  const built = ['index.js', 'index.cjs', 'index.d.ts', 'cli.js'].map((name) => `dist/${name}`);
  expect(paths).toEqual(expect.arrayContaining(built));
  const others = paths.filter((path) => !/^(dist\/|docs\/[\w-]+\.md$|docs\/monitoring\/)/.test(path));
  expect(others.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
});

it('the packed package names the licence of every package whose code it bundles', () => {
  const licences = readFileSync(join(installed, 'dist/THIRD-PARTY-LICENSES'), 'utf8');
  const library = ['tinyqueue', 'croner', '@bufbuild/protobuf'];
  const command = ['commander', 'cli-table3', 'cli-progress', 'string-width'];
  for (const name of [...library, ...command, 'preact', 'uplot', 'cronstrue']) {
    expect(licences).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+, `, 'm'));
  }
  expect(licences).toContain('Copyright 2008 Google Inc.');
});

it('the packed package holds every document that its documents link to', () => {
  const paths = new Set(packed.files.map(({ path }) => path));
  const documents = [...paths].filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md');
  for (const document of documents) {
    const text = readFileSync(join(installed, document), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g)) {
      if (target.endsWith('.png')) continue; // pictures are in the repository
      expect(paths, `${document} links to ${target}`).toContain(posix.join(posix.dirname(document), target));
    }
  }
});

it('the packed package has every entry of its manifest as a file', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    exports: unknown;
  };
  const files = JSON.stringify(manifest.exports).match(/\.\/[^"]+\.(js|cjs|d\.ts|d\.cts|json)(?=")/g) ?? [];
  const paths = packed.files.map(({ path }) => `./${path}`);
  expect(files.length).toBeGreaterThan(20);
  expect(paths).toEqual(expect.arrayContaining(files));
});

it('only the command contains packages for the terminal, not the library', () => {
  const others = packed.files.filter(({ path }) => /\.c?js$/.test(path) && path !== 'dist/cli.js');
  expect(others.length).toBeGreaterThan(10);
  for (const { path } of others) {
    expect(readFileSync(join(installed, path), 'utf8')).not.toMatch(/commander|cli-table3|cli-progress/i);
  }
});

const USE = `const timer = new SystemTimer(); console.log(typeof timer.schedule, typeof EmbeddedBroker.open);`;

it('the package installs no other package', () => {
  const names = readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'));
  expect(names).toEqual(['escapement']);
});

it('the installed package is imported by an ES module and required by CommonJS', () => {
  const imports = `import { SystemTimer } from 'escapement'; import { EmbeddedBroker } from 'escapement/tasks';`;
  const requires = `const { SystemTimer } = require('escapement'); const { EmbeddedBroker } = require('escapement/tasks');`;
  for (const [name, source] of Object.entries({ 'program.mjs': imports, 'program.cjs': requires })) {
    const { stdout, stderr } = run(process.execPath, [writeProgram(name, `${source}\n${USE}`)]);
    expect({ stdout, stderr }).toEqual({ stdout: 'function function\n', stderr: '' });
  }
});

it.each([
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'esnext', moduleResolution: 'bundler' },
])(
  'the installed package compiles in a strict TypeScript program with moduleResolution $moduleResolution',
  (resolution) => {
    const folder = `types-${resolution.moduleResolution}`;
    const lines = subpaths().map(
      (subpath, index) => `import * as m${index} from '${subpath}'; void m${index};`,
    );
    const use = `import { SystemTimer } from 'escapement'; const wrong: string = new SystemTimer().size; void wrong;`;
    const program = writeProgram(`${folder}/program.ts`, [...lines, use].join('\n'));
    const typeRoots = [join(ROOT, 'node_modules/@types')];
    const target = { target: 'es2022', lib: ['es2023'], types: ['node'], typeRoots };
    const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, ...target, ...resolution };
    writeProgram(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions, files: [program] }));
    const { stdout } = run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]);
    // The one error that is there proves that the types were found and are no `any`.
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(/program\.ts.*error TS2322: Type 'number' is not assignable to type 'string'/),
    ]);
  },
  120_000,
);

it('the installed package compiles in a TypeScript program for browsers that checks declarations', () => {
  const program = writeProgram(
    'browser/program.ts',
    `import { EscapementError, SystemTimer, type TimerId } from 'escapement';
    export const id: TimerId = new SystemTimer().schedule(1_000, () => document.title);
    export const { cause } = new EscapementError('ERR_TIMER_CLOSED', 'closed');`,
  );
  const target = { target: 'es2021', lib: ['es2021', 'dom'], types: [], module: 'nodenext' };
  const compilerOptions = { strict: true, noEmit: true, ...target };
  writeProgram('browser/tsconfig.json', JSON.stringify({ compilerOptions, files: [program] }));
  const { stdout } = run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'browser']);
  expect(stdout).toBe('');
});

it('the installed package runs the escapement command', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const npx = (...words: string[]): object => run('npx', ['--no-install', 'escapement', ...words]);
  mkdirSync(join(project, 'empty'));
  expect(npx('--version')).toMatchObject({ stdout: `${version}\n`, status: 0 });
  expect(npx('diskqueue', 'ls', 'empty', '--json')).toMatchObject({
    stdout: `${JSON.stringify({ folder: 'empty', queues: [], failed: [] }, null, 2)}\n`,
    status: 0,
  });
});

/** Bundles `import { name } from 'escapement'` and returns the path of the bundle. */
function bundle(name: string): string {
  const entry = writeProgram(
    'entry.mjs',
    `import { ${name} } from 'escapement';\nconsole.log(typeof ${name});`,
  );
  const outfile = join(project, `bundle-${name}.mjs`);
  const options = { bundle: true, minify: true, format: 'esm', platform: 'node' } as const;
  buildSync({ ...options, entryPoints: [entry], outfile, logLevel: 'error' });
  return outfile;
}

it('a bundle of the installed package runs', () => {
  expect(run(process.execPath, [bundle('WorkQueue')]).stdout).toBe('function\n');
});

it.each(documentedSizes())('a bundle of %s has at most %d kB of the package', (name, kB) => {
  expect(gzipSync(readFileSync(bundle(name)), { level: 9 }).length).toBeLessThanOrEqual(kB * 1_000);
});

function subpaths(): string[] {
  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    exports: Record<string, unknown>;
  };
  return Object.keys(exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => subpath.replace(/^\./, 'escapement'));
}

/** The table of the sizes of imports, minified and gzipped. */
function documentedSizes(): [name: string, kB: number][] {
  const rows = readFileSync(join(ROOT, 'docs/imports.md'), 'utf8').matchAll(
    /^\| `(\w+)` +\| ([\d.]+) +\|$/gm,
  );
  const sizes = [...rows].map(([, name = '', kB]): [string, number] => [name, Number(kB)]);
  if (sizes.length < 6) throw new Error('docs/imports.md has no table of sizes');
  return sizes;
}
