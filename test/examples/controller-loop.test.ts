import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { Controller } from '../../examples/controller/controller/controller.ts';
import { compareTrees } from '../../examples/controller/demo/compare-trees.ts';
import { Journal, type Outcome } from '../../examples/controller/demo/journal.ts';

/** Nothing happens because of it. */
const NEVER_MS = 3_600_000;
const signal = new AbortController().signal;

let root: string;
let journal: Journal;
let controller: Controller | undefined;
let running: Promise<void> | undefined;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'controller-loop-'));
  await mkdir(join(root, 'source'));
  journal = new Journal();
});
afterEach(async () => {
  await controller?.stop();
  await running;
  journal.close();
  await rm(root, { recursive: true });
});

function start(changes: Partial<ConstructorParameters<typeof Controller>[0]> = {}): Controller {
  controller = new Controller({
    sourceDirectory: join(root, 'source'),
    outputDirectory: join(root, 'output'),
    metrics: prometheusMetrics({ registry: new Registry() }),
    tell: (news) => {
      journal.note(news);
    },
    workers: 4,
    maxRetries: 2,
    retryDelayMs: 1,
    resyncMs: NEVER_MS,
    ...changes,
  });
  running = controller.run();
  return controller;
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(join(root, path, '..'), { recursive: true });
  await writeFile(join(root, path), text);
}

async function until(key: string, outcome: Outcome, sinceMs = 0): Promise<void> {
  await journal.until(key, outcome, sinceMs, signal);
}

describe('the controller', () => {
  it('renders what was there, follows what changes, and removes what goes: by events alone', async () => {
    await put('source/team/a.json', '{"a":1}');
    start();
    await until('team/a.json', 'written');

    const changedMs = performance.now();
    await put('source/team/a.json', '{"a":2}');
    await put('source/in/new/directories.json', '{}');
    await until('in/new/directories.json', 'written');
    await until('team/a.json', 'written', changedMs);
    expect(await readFile(join(root, 'output/team/a.conf'), 'utf8')).toContain('a = 2');
    await rm(join(root, 'source/team'), { recursive: true });
    await until('team/a.json', 'removed');

    const { files, differences } = await compareTrees(join(root, 'source'), join(root, 'output'));
    expect({ files, differences }).toEqual({ files: 1, differences: [] });
    expect(journal.overlaps).toEqual([]);
  });

  it('gives up a file that goes on failing, and comes back when it changes', async () => {
    await put('source/a.json', '{');
    start();
    await until('a.json', 'dropped');
    expect(journal.attempts.filter(({ key }) => key === 'a.json').at(-1)).toMatchObject({ retries: 2 });

    await put('source/a.json', '{}');
    await until('a.json', 'written');
  });

  it('finds by its resync what no event told of', async () => {
    await put('source/a.json', '{}');
    start({ resyncMs: 20 });
    await until('a.json', 'written');

    const removedMs = performance.now();
    await rm(join(root, 'output/a.conf'));
    await until('a.json', 'written', removedMs);
  });

  it('leaves what waits for its retry alone when it looks at everything', async () => {
    await put('source/bad.json', '{');
    const started = start({ retryDelayMs: NEVER_MS });
    await until('bad.json', 'failed');
    const failedMs = performance.now();

    started.resync();
    await until('/', 'listed', failedMs);
    expect(started.load).toMatchObject({ depth: 0, waiting: 2 });
    expect(journal.attempts.filter(({ key }) => key === 'bad.json')).toHaveLength(1);
  });

  it('names at its stop what still waited for a retry', async () => {
    await put('source/bad.json', '{');
    const stopped = start({ retryDelayMs: NEVER_MS });
    await until('bad.json', 'failed');

    expect(await stopped.stop()).toEqual(['bad.json']);
    expect(await stopped.stop()).toEqual([]);
    expect(stopped.load).toEqual({ depth: 0, inWork: 0, waiting: 0 });
  });
});
