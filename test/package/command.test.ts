import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NPM_OPTIONS = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

interface PackedFile {
  readonly path: string;
  readonly mode: number;
}

describe('the escapement command in the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'escapement-package-'));
  let packed: { filename: string; files: PackedFile[] };

  beforeAll(() => {
    const words = ['pack', '--json', '--pack-destination', folder, ...NPM_OPTIONS];
    const output = execFileSync('npm', words, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    [packed] = JSON.parse(output) as [typeof packed];
  }, 60_000);

  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it('is packed, with what it needs in one file', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(paths).toContain('dist/cli.js');
    expect(
      paths.every((path) => path.startsWith('dist/') || /^(package\.json|README\.md|LICENSE)$/.test(path)),
    ).toBe(true);
    expect(readFileSync(join(ROOT, 'dist/cli.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it('has nothing to do with the library: no other file knows a terminal', () => {
    const others = packed.files.filter(({ path }) => /\.c?js$/.test(path) && path !== 'dist/cli.js');
    expect(others.length).toBeGreaterThan(10);
    for (const { path } of others) {
      expect(readFileSync(join(ROOT, path), 'utf8')).not.toMatch(/commander|cli-table3|cli-progress/i);
    }
  });

  it('runs where the package is installed, and needs nothing else', () => {
    writeFileSync(join(folder, 'package.json'), '{"name":"user","version":"1.0.0"}');
    execFileSync('npm', ['install', join(folder, packed.filename), ...NPM_OPTIONS], {
      cwd: folder,
      stdio: 'ignore',
    });
    expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'escapement',
    ]);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    const npx = (...words: string[]): { stdout: string; status: number | null } =>
      spawnSync('npx', ['--no-install', 'escapement', ...words], { cwd: folder, encoding: 'utf8' });
    expect(npx('--version')).toMatchObject({ stdout: `${version}\n`, status: 0 });
    expect(npx('diskqueue', 'ls', '.', '--json')).toMatchObject({
      stdout: `${JSON.stringify({ folder: '.', queues: [] }, null, 2)}\n`,
      status: 0,
    });
  }, 60_000);
});
