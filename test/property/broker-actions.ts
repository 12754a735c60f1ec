import fc from 'fast-check';
import type { QueueLimits } from 'escapement/tasks';
import { TASK_STATES } from '../../src/tasks/task-state.ts';
import { action, weighted, type ValueOf } from './actions.ts';

/*
 * What can be done to a broker, as data, so that a history can be replayed, and shrunk. Small numbers of everything: what
 * is interesting happens when things meet.
 */

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const queue = fc.constantFrom('q', 'q', 'q', 'r');
/** One begins like the key of a set of the other. */
export const GROUPS = ['x', 'x:y'];
const group = fc.constantFrom('', '', '', ...GROUPS);
const someGroup = fc.constantFrom(...GROUPS);
const lock = fc.constantFrom('', 'k', 'l');
const key = fc.constantFrom('', '', 'A', 'A', 'B', 'C');

/**
 * A moment of a history: every time is a multiple of it. Redis keeps whole seconds, and its own clock goes on: a moment is so long
 * that it matters little how long a test takes.
 */
export const MOMENT_MS = 10_000;

const moments = (...counts: number[]): fc.Arbitrary<number> =>
  fc.constantFrom(...counts.map((count) => count * MOMENT_MS));

/** With a token each thousand moments, or each few thousand. */
const rate = fc.constantFrom(
  { tasks: 1, perMs: 1_000 * MOMENT_MS },
  { tasks: 1, perMs: 5_000 * MOMENT_MS, burst: 2 },
  { tasks: 2, perMs: 10_000 * MOMENT_MS },
  { tasks: 1, perMs: 20_000 * MOMENT_MS, burst: 3 },
);
const someLimits = { concurrency: fc.integer({ min: 1, max: 3 }), rate };
const limits: fc.Arbitrary<QueueLimits | undefined> = fc.option(
  fc.record({ ...someLimits, perKey: fc.record(someLimits, { requiredKeys: [] }) }, { requiredKeys: [] }),
  { nil: undefined, freq: 3 },
);
/** In units: see broker-world.ts. */
const delay = fc.constantFrom(0, 0, 0, 1, 5, 20, 70);
const state = fc.constantFrom(...TASK_STATES);
/** Of all leases, or sets, that there ever were; the latest is 0. */
const back = fc.nat({ max: 5 });
const spanMs = moments(0, 1_000, 5_000, 10_000, 30_000);

/** How a run ends, or what it writes meanwhile. */
const ENDS = [
  ...(['complete', 'complete', 'complete', 'archive', 'archive', 'release', 'discard'] as const),
  ...(['writeResult', 'writeProgress'] as const),
];

const task = fc.record({
  ...{ id, queue, group, key, lock, isNext: fc.nat(4).map((n) => n === 0), delay },
  ...{ ttlMs: moments(5_000, 50_000), retentionMs: moments(0, 20_000) },
  onDuplicate: fc.constantFrom('reject', 'reject', 'replace', 'extend'),
});

export type TaskSpec = Omit<ValueOf<typeof task>, 'queue'> & { readonly queue: string };

const change = fc.constantFrom('delete', 'run', 'archive');
const brokerAction = weighted(
  [10, action('enqueue', { task })],
  [2, action('enqueueMany', { tasks: fc.array(task, { maxLength: 4 }) })],
  [2, action('tick', { task, entry: fc.constantFrom('e', 'f'), atMs: fc.nat(5) })],
  [10, action('dequeue', { queue, limit: fc.constantFrom(0, 1, 2, 2, 3, 9), leaseMs: spanMs })],
  [14, action('end', { how: fc.constantFrom(...ENDS), back })],
  [4, action('retry', { back, delay, isFailure: fc.boolean(), isRecovery: fc.boolean() })],
  [2, action('extend', { backs: fc.array(back, { maxLength: 3 }), leaseMs: spanMs })],
  [3, action('recover', { graceMs: spanMs, leaseMs: spanMs })],
  [8, action('advance', { ms: moments(0, 1_000, 1_000, 5_000, 20_000, 100_000) })],
  [
    5,
    action('takeGroup', {
      ...{ queue, group: someGroup, graceMs: moments(0, 0, 1_000, 5_000), maxDelayMs: spanMs },
      ...{ maxSize: fc.nat({ max: 3 }), holdMs: spanMs },
    }),
  ],
  [5, action('replaceSet', { back, task, isElsewhere: fc.nat(9).map((n) => n === 0) })],
  [1, action('sweep')],
  [5, action('one', { change, queue, id })],
  [3, action('all', { change, queue, state, group: fc.option(someGroup, { nil: undefined }) })],
  [1, action('updatePayload', { queue, id })],
  [2, action(['pause', 'resume'], { queue })],
  [3, action('setLimits', { queue, limits })],
  [1, action('removeQueue', { queue, force: fc.boolean() })],
  [4, action('reopen')],
);

export type BrokerAction = ValueOf<typeof brokerAction>;

/** What its archive keeps. */
export const maxArchived = fc.constantFrom(1, 2);

export const history = fc.array(brokerAction, { minLength: 1, maxLength: 80, size: 'max' });
