import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findRedis } from '../redis/find-redis.ts';
import { freshDatabase, type FreshDatabase } from '../redis/redis-case.ts';
import { finished } from '../run-program.ts';
import { readSteps, type Step } from './page-steps.ts';
import { startRegistry, type Registry } from './registry.ts';
import { READ_PAGES, readSnippets } from './snippets.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Longest time that a command may take, in milliseconds. */
const MOST_MS = 60_000;

let registry: Registry;
let database: FreshDatabase | undefined;
let folder = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'escapement-reader-'));
  const words = ['pack', '--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
  const [packed] = JSON.parse(execFileSync('npm', words, { cwd: ROOT, encoding: 'utf8' })) as {
    filename: string;
  }[];
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as object;
  registry = await startRegistry({
    name: 'escapement',
    manifest: { ...manifest, scripts: {}, devDependencies: {} },
    archive: join(folder, packed?.filename ?? ''),
  });
  if (!('lack' in findRedis())) database = await freshDatabase();
}, MOST_MS);

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await database?.dispose();
  rmSync(folder, { recursive: true });
});

function linesOf(text: string): number {
  return text.split('\n').length;
}

/** Programs listen on a free port, which differs from that of the page. */
function anyPort(text: string): string {
  return text.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT');
}

/** A reader at a terminal, in an empty folder. */
class Reader {
  #at = '';

  async take(step: Step): Promise<void> {
    if (this.#at === '') this.#at = mkdtempSync(join(folder, 'empty-'));
    if ('save' in step) writeFileSync(join(this.#at, step.save), step.source);
    else await this.#run(step.run, step.prints, step.endless);
  }

  async #run(command: string, prints: string | undefined, endless: boolean): Promise<void> {
    const child = spawn('sh', ['-ec', `${command}\npwd >&3`], {
      cwd: this.#at,
      env: {
        ...process.env,
        TMPDIR: folder,
        npm_config_registry: registry.url,
        npm_config_cache: join(folder, 'cache'),
        npm_config_audit: 'false',
        npm_config_fund: 'false',
        npm_config_update_notifier: 'false',
        ...(database === undefined ? {} : { REDIS_URL: database.url }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true, // a group of its own, for Ctrl+C
      timeout: MOST_MS,
    });
    let stdout = '';
    let at = '';
    child.stdio[3]?.on('data', (path: Buffer) => (at += path.toString()));
    child.stdout?.on('data', (text: Buffer) => {
      stdout += text.toString();
      if (endless && linesOf(stdout) >= linesOf(prints ?? '')) process.kill(-(child.pid ?? 0), 'SIGINT');
    });
    const { stderr, code } = await finished(child);
    if (prints !== undefined) {
      expect({ command, stdout: anyPort(stdout), stderr }).toEqual({
        command,
        stdout: anyPort(prints),
        stderr: '',
      });
    }
    if (endless) return;
    expect({ command, code, stderr }).toMatchObject({ command, code: 0 });
    this.#at = at.trim();
  }
}

describe.each(READ_PAGES)('a new reader of %s', (page) => {
  const reader = new Reader();
  const sections = readSteps(readFileSync(join(ROOT, page), 'utf8')).filter(({ steps }) => steps.length > 0);

  it('a new reader finds commands to run, files to save, and what they print', () => {
    const steps = sections.flatMap((section) => section.steps);
    expect(steps.filter((step) => 'save' in step).length).toBeGreaterThan(2);
    expect(steps.filter((step) => 'prints' in step && step.prints !== undefined).length).toBeGreaterThan(2);
  });

  const firstOnRedis = sections.findIndex(({ steps }) =>
    steps.some((step) => 'save' in step && step.source.includes('REDIS_URL')),
  );

  it.for(sections)(
    'a new reader follows the section $heading in an empty folder, and sees what the page shows',
    { timeout: 5 * MOST_MS },
    async (section, context) => {
      context.skip(database === undefined && sections.indexOf(section) >= firstOnRedis, 'there is no Redis');
      for (const step of section.steps) await reader.take(step);
    },
  );
});

const reader = new Reader();
const examples = readSnippets().filter(({ page }) => page === 'README.md');

it(
  'a new reader of README.md installs the package, and a program that runs TypeScript',
  async () => {
    expect(examples).toHaveLength(3);
    await reader.take({
      run: 'npm init -y && npm install escapement tsx',
      prints: undefined,
      endless: false,
    });
  },
  MOST_MS,
);

it.each(examples)(
  'a new reader of README.md saves $heading as example.mts, and sees what the page shows',
  async ({ source, prints }) => {
    await reader.take({ save: 'example.mts', source });
    const printed = prints.map((line) => `${line}\n`).join('');
    await reader.take({ run: 'npx tsx example.mts', prints: printed, endless: false });
  },
  MOST_MS,
);
