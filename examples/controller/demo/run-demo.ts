import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Controller } from '../controller/controller.ts';
import type { Tell } from '../controller/news.ts';
import { Service } from '../controller/service.ts';
import type { DemoOptions } from '../options.ts';
import { compareTrees } from './compare-trees.ts';
import type { DemoResult } from './demo-result.ts';
import { Journal } from './journal.ts';
import { play, setTheStage, type Stage } from './scenario.ts';
import { scrape } from './scrape.ts';
import { SettingsTree } from './settings-tree.ts';

/** How the controller is set up: impatient, because nobody likes to wait. */
const SETUP = { workers: 4, maxRetries: 5, retryDelayMs: 25, resyncMs: 1_000 };
/** How often it is looked whether all is done. */
const POLL_MS = 10;

/** Who watches the demonstration. */
export interface Audience {
  readonly note: Tell;
  readonly event: (text: string) => void;
  open(controller: Controller): void;
}

/** Runs a controller in a directory of its own, plays tricks on it, and removes the directory. Rejects if interrupted. */
export async function runDemo(
  options: DemoOptions,
  audience: Audience,
  signal: AbortSignal,
): Promise<DemoResult> {
  const directory = await mkdtemp(join(tmpdir(), 'escapement-controller-'));
  const journal = new Journal();
  const stage: Stage = {
    tree: new SettingsTree(join(directory, 'source'), join(directory, 'staging')),
    sourceDirectory: join(directory, 'source'),
    outputDirectory: join(directory, 'output'),
    durationMs: options.durationMs,
    journal,
    signal,
    say: audience.event,
  };
  try {
    await setTheStage(stage);
    return await withController(stage, options.port, audience);
  } finally {
    journal.close();
    await rm(directory, { recursive: true });
  }
}

async function withController(stage: Stage, port: number, audience: Audience): Promise<DemoResult> {
  const { journal, tree, sourceDirectory, outputDirectory } = stage;
  const tell: Tell = (news) => {
    journal.note(news);
    audience.note(news);
  };
  const service = new Service({ ...SETUP, sourceDirectory, outputDirectory, tell });
  try {
    const url = await service.start(port);
    stage.say(`a controller with ${SETUP.workers} workers; metrics: ${url}`);
    audience.open(service.controller);
    const [during] = await Promise.all([scrape(url), play(stage)]);
    await settle(service.controller, stage.signal);
    stage.say('the writers have finished, and the queue is empty');
    const left = await service.stop();
    const afterwards = await scrape(url);
    const trees = await compareTrees(sourceDirectory, outputDirectory);
    const { events, attempts, overlaps, mostInWork } = journal;
    const { changes } = tree;
    return { ...SETUP, changes, events, attempts, overlaps, mostInWork, during, afterwards, trees, left };
  } finally {
    await service.stop();
    await service.close();
  }
}

/** One more look at everything; then only the next resync waits. */
async function settle(controller: Controller, signal: AbortSignal): Promise<void> {
  controller.resync();
  do await sleep(POLL_MS, undefined, { signal });
  while (isBusy(controller));
}

function isBusy({ load }: Controller): boolean {
  return load.depth + load.inWork > 0 || load.waiting > 1;
}
