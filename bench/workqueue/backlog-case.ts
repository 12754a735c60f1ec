/** A queue that is never empty: what is a job's cost when ten thousand are in line, and what when a million are? */
import { performance } from 'node:perf_hooks';
import { NS_PER_MS } from '../lib/measurement.ts';
import type { Contestant, ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { fastqSync, fastqSyncWithSet } from './fastq-queues.ts';
import { contest, type JobQueue, type OpenQueue } from './job-queue.ts';
import type { Work } from './jobs.ts';
import { dropKeys, keysUpTo } from './keys.ts';
import { asyncQueueSync } from './other-queues.ts';
import { byHandSync, runSync } from './our-queues.ts';

/** The smaller backlog is this part of the larger one. */
const PART = 100;
/** Every key comes back when twice as many jobs were done as are in line: it is not known any more then. */
const KEYS_PER_JOB = 2;
/** The larger backlog is gone through twice: a map of a million is made anew once in a million changes or so. */
const TIMES_THROUGH = 2;

const FEW = 'a hundredth in line';
const MANY = 'all in line';
const GROWTH = 'growth';
const MOST_GROWTH = 3;

/** Each job adds another at the back, until enough are done: a queue that never lets go of the turn must end, too. */
class EndlessJobs implements Work {
  readonly finished: Promise<void>;
  worked = 0;
  readonly #keys: readonly string[];
  readonly #size: number;
  #next: number;
  #queue: JobQueue | undefined;
  #finish: () => void = () => undefined;

  constructor(backlog: number, size: number) {
    this.#keys = keysUpTo(backlog * KEYS_PER_JOB);
    this.#size = size;
    this.#next = backlog;
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Until then, nothing that is done adds anything. */
  start(queue: JobQueue): void {
    this.#queue = queue;
    this.worked = 0;
  }

  work(): void {
    if (++this.worked === this.#size) {
      this.#queue = undefined;
      this.#finish();
    }
    if (this.#queue === undefined) return;
    this.#queue.add(this.#keys[this.#next] as string);
    this.#next = this.#next + 1 === this.#keys.length ? 0 : this.#next + 1;
  }
}

/** @returns nanoseconds for each of `size` jobs, with `backlog` in line all the time. */
async function timeOf(open: OpenQueue, backlog: number, size: number): Promise<number> {
  const jobs = new EndlessJobs(backlog, size);
  const queue = open(jobs, 1);
  queue.addAll(keysUpTo(backlog));
  jobs.start(queue);
  const startMs = performance.now();
  await jobs.finished;
  const elapsedMs = performance.now() - startMs;
  queue.close();
  return (elapsedMs * NS_PER_MS) / size;
}

/** What no queue that knows its keys can do without: the newest key in, the oldest one out. */
function timeOfMap(backlog: number, size: number): number {
  const map = new Map<string, number>();
  const keys = keysUpTo(backlog * KEYS_PER_JOB);
  for (let place = 0; place < backlog; place++) map.set(keys[place] as string, place);
  let oldest = 0;
  let next = backlog;
  const startMs = performance.now();
  for (let done = 0; done < size; done++) {
    map.set(keys[next] as string, next);
    map.delete(keys[oldest] as string);
    oldest = oldest + 1 === keys.length ? 0 : oldest + 1;
    next = next + 1 === keys.length ? 0 : next + 1;
  }
  const elapsedMs = performance.now() - startMs;
  return map.size === backlog ? (elapsedMs * NS_PER_MS) / size : Number.NaN;
}

async function compare(
  backlog: number,
  measure: (backlog: number, size: number) => number | Promise<number>,
): Promise<ScenarioOutcome> {
  const size = backlog * TIMES_THROUGH;
  const part = Math.ceil(backlog / PART);
  // Once for nothing: what the contestant before has left on the heap makes the first run three times as slow.
  await measure(part, size);
  const few = await measure(part, size);
  const many = await measure(backlog, size);
  dropKeys();
  return {
    values: { [MANY]: many, [FEW]: few, [GROWTH]: many / few },
    problem: Number.isNaN(few + many) ? 'the map has another size than it should' : undefined,
  };
}

const bareMap: Contestant<(size: number) => Promise<ScenarioOutcome>> = {
  name: 'a bare Map',
  role: 'rival',
  note: 'no queue: set of a new key and delete of the oldest one, which is what any queue must do that knows its keys.',
  open: (backlog) => compare(backlog, timeOfMap),
};

export const backlogCase: ScenarioCase = {
  kind: 'scenario',
  name: 'a backlog: each job adds a new key at the back',
  note: `Growth is the time with all in line, divided by the time with a hundredth. The set and delete of a bare Map grow, too: they wait for memory.`,
  size: { full: 1_000_000, quick: 20_000, of: 'jobs in line' },
  rounds: 3,
  metrics: [
    { name: MANY, unit: 'ns/job' },
    { name: FEW, unit: 'ns/job' },
    { name: GROWTH, unit: '', isAside: true },
  ],
  contestants: [
    ...contest(
      [fastqSync, fastqSyncWithSet, asyncQueueSync, runSync, byHandSync],
      (open) => (backlog: number) => compare(backlog, (inLine, size) => timeOf(open, inLine, size)),
    ),
    {
      name: 'p-queue',
      role: 'rival',
      open: { cannot: 'at 850 bytes each, a million of its jobs would take 850 MB' },
    },
    bareMap,
  ],
  targets: [{ kind: 'limit', contestant: runSync.name, metric: GROWTH, atMost: MOST_GROWTH }],
};
