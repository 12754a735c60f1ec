/** Jobs from add to done: in bursts, one after the other, and with a backlog that never empties. */
import { performance } from 'node:perf_hooks';
import type { OpenBulk, Scenario } from '../lib/kinds.ts';
import { contest, NS_PER_MS, rival, unable } from '../lib/part.ts';
import type { Contestant, Measurement } from '../lib/part.ts';
import { DISTINCT, dropKeys, Jobs, KeysInTurn, keysUpTo, newKeys } from './jobs.ts';
import type { AwaitedQueue, OpenQueue, Work } from './jobs.ts';
import { AWAITED_QUEUES, QUEUES } from './queues.ts';

/** A queue, or one whose `addAll` returns a promise that resolves when the queue has all jobs. */
export type OpenBurstQueue = (jobs: Work, concurrency: number) => BurstQueue | Promise<BurstQueue>;

export interface BurstQueue {
  addAll(keys: readonly string[]): unknown;
  close(): unknown;
}

/** Each burst is added when the one before is done. @param keysOf - returns the keys of a burst. */
export function burstsOn(
  contestants: readonly Contestant<OpenBurstQueue>[],
  concurrency: number,
  burst: number,
  keysOf = keysUpTo,
): Contestant<OpenBulk>[] {
  return contest<OpenBurstQueue, OpenBulk>(contestants, (open) => async (size) => {
    const jobs = new Jobs();
    const queue = await open(jobs, concurrency);
    const count = Math.max(Math.round(size / burst), 1);
    return {
      run: async () => {
        for (let done = 0; done < count; done++) {
          const keys = keysOf(burst);
          const allDone = jobs.expect(keys);
          await queue.addAll(keys);
          await allDone;
        }
      },
      items: () => count * burst,
      check: () => jobs.check(),
      close: () => queue.close(),
    };
  });
}

export function bursts(queues: 'sync' | 'async', areKeysNew: boolean): Contestant<OpenBulk>[] {
  return burstsOn(QUEUES[queues], 1, DISTINCT, areKeysNew ? newKeys : keysUpTo);
}

/** Always the same key. */
export const oneByOne = contest<OpenQueue<AwaitedQueue>, OpenBulk>(AWAITED_QUEUES, (open) => (size) => {
  const jobs = new Jobs();
  const keys = Array.from({ length: size }, () => keysUpTo(1)[0] as string);
  const queue = open(jobs, 1);
  void jobs.expect(keys);
  return { run: () => queue.doEach(keys), check: () => jobs.check(), close: () => queue.close() };
});

/** The smaller backlog is this part of the larger one. */
const PART = 100;
/** A key returns after twice as many jobs as are in the backlog: the queue does not have it any more then. */
const KEYS_PER_JOB = 2;
/** The larger backlog is processed twice, because a Map of a million is rehashed about once in a million changes. */
const TIMES_THROUGH = 2;

/**
 * Each job adds another one, until `size` are done. The end comes without a turn of the event loop, if need be.
 *
 * @returns nanoseconds for each of `size` jobs, with `backlog` in line all the time.
 */
async function timeOf(open: OpenQueue, backlog: number, size: number): Promise<number> {
  const keys = new KeysInTurn(keysUpTo(backlog * KEYS_PER_JOB), backlog);
  let left = Infinity;
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const work = (): void => {
    if (--left === 0) finish();
    if (left > 0 && left < size) queue.add(keys.next());
  };
  const queue = open({ work }, 1);
  queue.addAll(keysUpTo(backlog));
  left = size; // jobs that were done before add none
  const startMs = performance.now();
  await finished;
  const elapsedMs = performance.now() - startMs;
  queue.close();
  return (elapsedMs * NS_PER_MS) / size;
}

/** What every queue with keys must do: set the newest key, delete the oldest one. */
function timeOfMap(backlog: number, size: number): number {
  const keys = keysUpTo(backlog * KEYS_PER_JOB);
  const map = new Map(keys.slice(0, backlog).map((key, place) => [key, place]));
  const [oldest, newest] = [new KeysInTurn(keys), new KeysInTurn(keys, backlog)];
  const startMs = performance.now();
  for (let done = 0; done < size; done++) {
    map.set(newest.next(), done);
    map.delete(oldest.next());
  }
  const elapsedMs = performance.now() - startMs;
  return map.size === backlog ? (elapsedMs * NS_PER_MS) / size : Number.NaN;
}

async function compareBacklogs(
  backlog: number,
  measure: (backlog: number, size: number) => number | Promise<number>,
): Promise<Measurement> {
  const size = backlog * TIMES_THROUGH;
  const part = Math.ceil(backlog / PART);
  // Discarded: garbage of the contestant before makes the first run three times as slow.
  await measure(part, size);
  const few = await measure(part, size);
  const many = await measure(backlog, size);
  dropKeys();
  return {
    values: { 'all in line': many, 'a hundredth in line': few, growth: many / few },
    problem: Number.isNaN(few + many) ? 'the map has a wrong size' : undefined,
  };
}

export const backlog: readonly Contestant<Scenario>[] = [
  ...contest<OpenQueue, Scenario>(
    QUEUES.backlogged,
    (open) => (jobs) => compareBacklogs(jobs, (inLine, size) => timeOf(open, inLine, size)),
  ),
  unable('p-queue', 'at 850 bytes each, a million of its jobs would take 850 MB'),
  rival(
    'a bare Map',
    (jobs) => compareBacklogs(jobs, timeOfMap),
    'no queue: set of a new key and delete of the oldest one, which every queue with keys must do.',
  ),
];
