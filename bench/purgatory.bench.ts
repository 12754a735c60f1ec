/** The purgatory against a Map with host timeouts, and against a model of Kafka's design. */
import { bulk, micro, scenario } from './lib/kinds.ts';
import { aside, atMost, metric, TIME, type BenchCase, type BenchPart, type Size } from './lib/part.ts';
import type { CompleteBy } from './purgatory/operations.ts';

const runs = () => import('./purgatory/runs.ts');

const A_FEW = 10;
const FEW = { full: A_FEW, quick: A_FEW, of: 'waiting' };
const MANY = { full: 100_000, quick: 10_000, of: 'waiting' };
const HOT_NOTE =
  'The same keys are added and removed again and again. A Map of V8 keeps deleted keys in its chains until it is ' +
  'rehashed, which is rare for a large one: deleting an empty key and adding it again makes later lookups slower.';
const COLD_NOTE =
  'The keys, lists and neighbours of every operation have not been used for a hundred thousand operations: they are ' +
  'out of the caches, and in the old generation of the heap.';

function operation(name: string, size: Size, by: CompleteBy, ringSize: number, note?: string): BenchCase {
  return micro({
    name: `tryCompleteElseWatch on 3 keys + ${name}`,
    note,
    size,
    contestants: async () => (await runs()).operations(by, ringSize),
    targets: [atMost('ours', TIME, 1_500)],
  });
}

function waitOn(name: string, way: 'atOnce' | 'byPromise' | 'afterCheck'): BenchCase {
  return bulk({
    name: `wait on 3 keys: ${name}`,
    size: { full: 200_000, quick: 20_000, of: 'waits' },
    contestants: async () => (await runs()).waits(way),
  });
}

function crowdedKey(size: number, label: string): BenchCase {
  return bulk({
    name: `one key, ${label} wait for it: a check that completes one of them, per watcher`,
    note: 'A check tries all of them. Its cost is linear if this is the same for ten times as many, apart from caches.',
    size: { full: size, quick: Math.ceil(size / 10), of: 'watchers' },
    contestants: async () => (await runs()).crowdedKey,
  });
}

/** At one of the two settings that Kafka has published. */
function harness(pct50Ms: number, pct75Ms: number, note: string): BenchCase {
  return scenario({
    name: `Kafka's harness: 100 000 requests/s, timeout 200 ms, half answer in ${pct50Ms} ms`,
    note,
    size: { full: 500_000, quick: 20_000, of: 'requests' },
    rounds: 2,
    metrics: [
      metric('cpu', 'ms'),
      aside('rate reached', '/s'),
      aside('shortfall', '%'),
      aside('p99 loop delay', 'ms'),
      aside('peak heap', 'MiB'),
      metric('dead entries'),
      aside('expired', '%'),
      aside('off theory', 'points'),
    ],
    contestants: async () => (await runs()).harness(pct50Ms, pct75Ms),
    targets: [atMost('ours', 'shortfall', 1), atMost('ours', 'off theory', 0.5)],
  });
}

export const part: BenchPart = {
  title: 'operations that wait for a condition or a deadline',
  remarks: [
    'setTimeout + Map: a Map of Sets from keys to operations, and a host timeout for each operation. It does less: an ' +
      'operation that throws breaks the check of the others, and a chain of completions ends in a stack overflow.',
    "Kafka's design: completed operations stay in the lists of their keys until a key is checked, or until more than " +
      '1 000 are estimated to be dead and a purge goes through all lists. On our timer, advanced by a reaper as in Kafka.',
  ],
  cases: [
    operation('checkAndComplete: few waiting', FEW, 'check', A_FEW),
    operation('forceComplete: few waiting', FEW, 'force', A_FEW),
    operation('checkAndComplete: many waiting, a few of them come and go', MANY, 'check', A_FEW, HOT_NOTE),
    operation('checkAndComplete: many waiting, always the oldest goes', MANY, 'check', Infinity, COLD_NOTE),
    bulk({
      name: 'expire: all at once, 3 keys each out of a thousand',
      note:
        'They become due while the program is busy; timed is from there until the last has expired. Ours expires them in ' +
        'order, 10 000 in a turn of the event loop; the host all in one turn.',
      size: { full: 100_000, quick: 10_000, of: 'operations' },
      contestants: async () => (await runs()).expiry,
    }),
    waitOn('the condition holds', 'atOnce'),
    waitOn('the condition is a resolved promise', 'byPromise'),
    waitOn('the condition holds after a check', 'afterCheck'),
    crowdedKey(10_000, '10 000'),
    crowdedKey(100_000, '100 000'),
    harness(
      20,
      60,
      'In theory 7.87 % expire. All requests wait for the same 3 keys, and are completed by forceComplete, not by a check.',
    ),
    harness(200, 400, 'In theory 50 % expire.'),
  ],
};
