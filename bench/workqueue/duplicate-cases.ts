/** Adds of keys that are queued already: what a controller sees most, and has to do next to nothing for. */
import { WorkQueue } from 'escapement';
import { TIME } from '../lib/measurement.ts';
import type { Contestant, MicroCase, MicroRun } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { DISTINCT, keysUpTo } from './keys.ts';

/** Eight million a second. */
const MOST_NS = 125;

type Open = (size: number) => MicroRun;

/** As one writes it round any queue: what is in the Set is queued. */
function openSet(keys: readonly string[]): MicroRun {
  const queued = new Set(keys);
  const pushed = [...keys];
  let place = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = keys[place] as string;
        if (!queued.has(key)) {
          queued.add(key);
          pushed.push(key);
        }
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (pushed.length === keys.length ? undefined : `${pushed.length} are queued`),
    close: () => undefined,
  };
}

function openOurs(keys: readonly string[]): MicroRun {
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  let place = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        queue.add(keys[place] as string);
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (queue.length === keys.length ? undefined : `${queue.length} are queued`),
    close: () => {
      queue.shutDown();
    },
  };
}

/** The same with a string that is made for each add. */
function openNewSet(keys: readonly string[]): MicroRun {
  const queued = new Set(keys);
  const pushed = [...keys];
  let place = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = `default/pod-${place}`;
        if (!queued.has(key)) {
          queued.add(key);
          pushed.push(key);
        }
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (pushed.length === keys.length ? undefined : `${pushed.length} are queued`),
    close: () => undefined,
  };
}

function openNewOurs(keys: readonly string[]): MicroRun {
  const queue = new WorkQueue<string>();
  for (const key of keys) queue.add(key);
  let place = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        queue.add(`default/pod-${place}`);
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (queue.length === keys.length ? undefined : `${queue.length} are queued`),
    close: () => {
      queue.shutDown();
    },
  };
}

const CANNOT = { cannot: 'each add is another job' };
const OTHERS: readonly Contestant<Open>[] = [
  { name: 'fastq', role: 'rival', open: CANNOT },
  { name: 'async.queue', role: 'rival', open: CANNOT },
  { name: 'p-queue', role: 'rival', open: CANNOT },
];

function duplicateCase(
  name: string,
  bySet: (keys: readonly string[]) => MicroRun,
  byUs: (keys: readonly string[]) => MicroRun,
  targets: readonly Target[],
): MicroCase {
  return {
    kind: 'micro',
    name: `add of a key that is queued: ${name}`,
    size: { full: DISTINCT, quick: DISTINCT, of: 'keys queued' },
    contestants: [
      { name: 'Set', role: 'baseline', open: (size) => bySet(keysUpTo(size)) },
      ...OTHERS,
      { name: 'ours', role: 'ours', open: (size) => byUs(keysUpTo(size)) },
    ],
    targets,
  };
}

export const duplicateCases: readonly MicroCase[] = [
  duplicateCase('the same string', openSet, openOurs, [
    { kind: 'limit', contestant: 'ours', metric: TIME, atMost: MOST_NS },
  ]),
  duplicateCase('a new string, made for it', openNewSet, openNewOurs, []),
];
