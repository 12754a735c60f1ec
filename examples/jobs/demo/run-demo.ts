import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoOptions } from '../options.ts';
import { JobsService, type JobsServiceOptions } from '../service/jobs-service.ts';
import type { RunLine } from '../service/run-log.ts';
import type { Digest } from '../service/tasks.ts';
import { sendBurst } from './burst.ts';
import type { Burst, DemoResult } from './demo-result.ts';
import { FlakyStore } from './flaky-store.ts';
import { Journal } from './journal.ts';
import { JobsClient, unfinished, type QueueCounts } from './jobs-client.ts';
import { countFiles, layOutOldFiles } from './old-files.ts';
import { WIDTHS } from './sample-images.ts';

/** Impatient, because nobody likes to wait. */
const SETUP = { graceMs: 1_000, cleanUpSpec: '@every 1s', keepMs: 600_000, maxBytes: 10_000_000 };
const FIRST_RETRY_MS = 50;

const CUSTOMERS = ['ada', 'bob'];
/** How long the service may take for what nobody waits for over HTTP: digests, and cleaning up. */
const PATIENCE_MS = 10_000;
const POLL_MS = 20;

/** Who watches the demonstration. */
export interface Audience {
  event(text: string): void;
  run(line: RunLine): void;
  digest(digest: Digest): void;
}

/** Where it takes place. */
interface Stage {
  readonly journal: Journal;
  readonly store: FlakyStore;
  readonly oldFiles: readonly string[];
  readonly client: JobsClient;
  readonly audience: Audience;
  readonly signal: AbortSignal;
}

/** Runs the service in a directory of its own, uses it, and removes the directory. Rejects if interrupted. */
export async function runDemo(
  options: DemoOptions,
  audience: Audience,
  signal: AbortSignal,
): Promise<DemoResult> {
  const directory = await mkdtemp(join(tmpdir(), 'escapement-jobs-'));
  try {
    return await inDirectory(directory, options, audience, signal);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function inDirectory(
  directory: string,
  { port, workers, durationMs }: DemoOptions,
  audience: Audience,
  signal: AbortSignal,
): Promise<DemoResult> {
  const journal = new Journal();
  const store = new FlakyStore(directory);
  const oldFiles = await layOutOldFiles(store);
  const { service, url } = await JobsService.start({
    ...{ ...SETUP, store, port, workers },
    retryDelayMs: (retried) => FIRST_RETRY_MS * 2 ** retried,
    ...hearing(journal, audience),
  });
  service.client.on('enqueued', journal.enqueued);
  try {
    audience.event(`the service listens: ${url}; its queues: ${url}/admin/api/queues`);
    const client = new JobsClient(url, signal);
    return await play({ journal, store, oldFiles, client, audience, signal }, durationMs);
  } finally {
    await service.close();
  }
}

function hearing(journal: Journal, audience: Audience): Pick<JobsServiceOptions, 'tell' | 'send'> {
  return {
    tell: (line) => {
      journal.note(line);
      audience.run(line);
    },
    send: (digest) => {
      journal.send(digest);
      audience.digest(digest);
    },
  };
}

/** Bursts of images until the time is over, at least one of each customer. */
async function play(stage: Stage, durationMs: number): Promise<DemoResult> {
  const { journal, store, client, oldFiles } = stage;
  const endMs = performance.now() + durationMs;
  const bursts: Burst[] = [];
  do {
    stage.audience.event(`${CUSTOMERS.join(' and ')} send a burst of images each`);
    bursts.push(...(await Promise.all(CUSTOMERS.map((customer) => sendBurst(client, customer)))));
    await patiently(stage, () => isAllDigested(bursts, journal));
  } while (performance.now() < endMs);
  await patiently(stage, async () => (await countFiles(oldFiles)) === 0);
  let queues: readonly QueueCounts[] = [];
  await patiently(stage, async () => isIdle((queues = await client.queues())));
  const { graceMs } = SETUP;
  const { runs, digests, notifications } = journal;
  return {
    ...{ widths: WIDTHS, graceMs, bursts, runs, digests, notifications, refusals: store.refusals },
    queues,
    oldFilesLeft: await countFiles(oldFiles),
  };
}

/** If it does not come true in time, the self-check will say what is missing. */
async function patiently({ signal }: Stage, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS;
  while (!(await isTrue()) && performance.now() < endMs) await sleep(POLL_MS, undefined, { signal });
}

function isAllDigested(bursts: readonly Burst[], { digests }: Journal): boolean {
  const digested = new Set(digests.flatMap(({ images }) => images.map(({ id }) => id)));
  return bursts.every(({ images }) => images.every(({ id, isBroken }) => isBroken || digested.has(id)));
}

function isIdle(queues: readonly QueueCounts[]): boolean {
  return queues.every((queue) => unfinished(queue) === 0);
}
