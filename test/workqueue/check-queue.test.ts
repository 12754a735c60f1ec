import { DelayingQueue, ManualClock, SystemTimer } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test, vi } from 'vitest';
import {
  HELD,
  HELD_AGAIN,
  IDLE,
  ItemEntry,
  ItemTable,
  type Phase,
  QUEUED,
} from '../../src/workqueue/item-table.ts';
import type { WorkQueueInternals } from '../../src/workqueue/work-queue.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { processAll, takeNow } from './support/take.ts';

const INTERNALS: symbol = Symbol.for('escapement.workqueue.internals');

interface Patient {
  readonly queue: DelayingQueue<string>;
  readonly timer: SystemTimer;
  readonly internals: WorkQueueInternals<string>;
  readonly table: Map<unknown, ItemEntry<string>>;
  readonly entry: (key: string) => ItemEntry<string>;
  readonly setPhase: (key: string, phase: Phase) => void;
}

/** A queue in which a and b are ready, c is held, d is held and added again, e and f wait, g is parked. */
async function makePatient(): Promise<Patient> {
  const timer = new SystemTimer({ clock: new ManualClock() });
  const queue = new DelayingQueue<string>({ timer });
  for (const item of 'cdab') queue.add(item);
  for (let i = 0; i < 2; i++) await takeNow(queue);
  queue.add('d');
  for (const item of 'ef') queue.addAfter(item, 10);
  queue.addAfter('g', Infinity);
  const internals = (queue as unknown as Record<symbol, WorkQueueInternals<string>>)[INTERNALS];
  if (internals === undefined) throw new Error('the internals have moved');
  const table = internals.items.table.all as Map<unknown, ItemEntry<string>>;
  const entry = (key: string): ItemEntry<string> => {
    const found = table.get(key);
    if (found === undefined) throw new Error('no such entry');
    return found;
  };
  const setPhase = (key: string, phase: Phase): void => {
    entry(key).phase = phase;
  };
  checkQueue(queue);
  return { queue, timer, internals, table, entry, setPhase };
}

/** What is read where nothing else is changed. */
function pretend<T extends object>(of: T, name: keyof T & string, value: unknown): void {
  vi.spyOn(of as Record<string, unknown>, name, 'get').mockReturnValue(value);
}

/** The waiting items. */
const rowsOf = ({ internals }: Patient) => [...(internals.waiting?.rows() ?? [])];

function changeRow(patient: Patient, key: string, change: object): void {
  const rows = rowsOf(patient).map((row) => (row.key === key ? { ...row, ...change } : row));
  Object.assign(patient.internals.waiting ?? {}, { rows: () => rows });
}

/** What checkQueue reports, and what is wrong then. */
const CORRUPTIONS: [RegExp, ...((patient: Patient) => unknown)[]][] = [
  [/key z: its entry is for another key/, ({ table, entry }) => table.set('z', entry('a'))],
  [/key a: its phase is invalid/, ({ setPhase }) => setPhase('a', 7 as Phase)],
  [/key c: it is idle and keeps its item/, ({ setPhase }) => setPhase('c', IDLE)],
  [
    /key a: it is ready, and its key leads elsewhere/,
    ({ table }) => table.delete('a'),
    ({ table, entry }) => {
      const other = new ItemEntry<string>('a');
      Object.assign(other, entry('a'));
      table.set('a', other);
    },
  ],
  [/key b: it is ready, and not in that phase/, ({ setPhase }) => setPhase('b', HELD)],
  [/key a: it is ready twice/, ({ internals, entry }) => internals.items.ready.push(entry('a'))],
  [/key a: its item has another key/, ({ entry }) => (entry('a').item = 'b')],
  [/key [ab]: it is not in the queue/, ({ internals }) => internals.items.ready.shift()],
  [/key c: it is not in the queue/, ({ setPhase }) => setPhase('c', QUEUED)],
  [/3 items are ready, but there are 2/, ({ internals }) => pretend(internals.items.ready, 'size', 3)],
  [/held is 1, but 2 items are held/, ({ internals }) => pretend(internals.items, 'held', 1)],
  [/held is 2, but 1 items are held/, ({ table }) => table.delete('c')],
  [
    /heldAgain is 0, but 1 held items were added again/,
    ({ internals }) => pretend(internals.items, 'heldAgain', 0),
  ],
  [/heldAgain is 1, but 2 held items were added again/, ({ setPhase }) => setPhase('c', HELD_AGAIN)],
  [/idle is 0, but 1 keys are/, ({ table }) => table.set('z', new ItemEntry<string>('z'))],
  [/a caller waits although an item is ready/, ({ internals }) => pretend(internals.items, 'takers', 1)],
  [
    /a caller waits although the queue has ended/,
    ({ queue, internals }) => {
      for (let i = 0; i < 2; i++) void queue.get();
      queue.done('d');
      void queue.get();
      queue.shutDown();
      checkQueue(queue);
      pretend(internals.items, 'takers', 1);
    },
  ],
  [/key e: the waiting item has another key/, (patient) => changeRow(patient, 'e', { item: 'f' })],
  [/key e: its due time is invalid/, (patient) => changeRow(patient, 'e', { dueAtMs: NaN })],
  [
    /key f: the waiting item is in no timer/,
    (patient) => {
      const row = rowsOf(patient).find(({ key }) => key === 'f');
      expect(patient.timer.cancel(row?.timer as never)).toBe(true);
    },
  ],
  [
    /size is 4, but 3 items are waiting/,
    ({ internals }) => {
      if (internals.waiting !== undefined) pretend(internals.waiting, 'size', 4);
    },
  ],
  [/items are waiting although the queue is shut down/, ({ internals }) => internals.items.shutDown()],
];

test.each(CORRUPTIONS)('checkQueue reports %s', async (message, ...corruptions) => {
  for (const corrupt of corruptions) {
    const patient = await makePatient();
    corrupt(patient);
    const error = thrownBy(() => checkQueue(patient.queue)) as Error;
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^checkQueue: /);
    vi.restoreAllMocks();
  }
});

test('checkQueue accepts keys of all kinds', async () => {
  const queue = new DelayingQueue<unknown>({ clock: new ManualClock() });
  const keys = [NaN, 0, -0, null, undefined, Symbol('s'), 1n, {}, [], Object.create(null), () => undefined];
  for (const key of keys) {
    queue.add(key);
    queue.addAfter(key, 10);
  }
  checkQueue(queue);
  await processAll(queue);
  expect(queue.waiting).toBe(10);
  queue.shutDown();
});

function use(table: ItemTable<unknown>, key: unknown): ItemEntry<unknown> {
  const entry = table.use(key);
  entry.phase = QUEUED;
  entry.item = key;
  return entry;
}

/** Uses keys from–to together, and releases them in that order. */
function useTogether(table: ItemTable<unknown>, from: number, to: number): void {
  const entries: ItemEntry<unknown>[] = [];
  for (let i = from; i < to; i++) entries.push(use(table, `key ${i}`));
  for (const entry of entries) table.release(entry);
}

function expectSound(table: ItemTable<unknown>): void {
  const entries = [...table.all.values()];
  const idle = entries.filter(({ phase }) => phase === IDLE);
  expect(table.idle).toBe(idle.length);
  expect(table.size).toBe(entries.length - idle.length);
  expect(idle.filter(({ item }) => item !== undefined)).toEqual([]);
}

const LEAST = 256;
const MOST = 16_384;

describe('the entries of keys', () => {
  test('a small table keeps no idle key', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) useTogether(table, 0, 128);
    expect([table.all.size, table.idle]).toEqual([0, 0]);
  });

  test('a large table keeps at most 256 idle keys that are not used again', () => {
    const table = new ItemTable<unknown>();
    useTogether(table, 0, 1_000);
    expectSound(table);
    for (let i = 0; i < 100; i++) useTogether(table, i * 1_000, (i + 1) * 1_000);
    expectSound(table);
    expect(table.idle).toBeGreaterThan(0);
    expect(table.idle).toBeLessThanOrEqual(LEAST);
  });

  test('a large table keeps at most 16 384 idle keys', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) {
      useTogether(table, 0, 40_000);
      expect(table.idle).toBeLessThanOrEqual(MOST);
    }
    expectSound(table);
    expect(table.idle).toBeGreaterThan(MOST / 2);
  });

  test('a large table keeps fewer idle keys when other keys are used', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) useTogether(table, 0, 20_000);
    expect(table.idle).toBeGreaterThan(10_000);
    for (let i = 0; i < 200; i++) useTogether(table, 100_000 + i * 300, 100_000 + i * 300 + 300);
    expectSound(table);
    expect(table.idle).toBeLessThanOrEqual(LEAST);
  });

  test('an entry that is in use is never forgotten, however many others are', () => {
    const table = new ItemTable<unknown>();
    useTogether(table, 0, 500);
    const kept = [...table.all.values()].slice(0, 50);
    for (const { key } of kept) use(table, key);
    for (let i = 0; i < 20; i++) useTogether(table, i * 1_000, i * 1_000 + 1_000);
    const [first] = kept;
    const again = use(table, 'key 5');
    table.release(again);
    expectSound(table);
    for (const entry of kept.filter(({ phase }) => phase === QUEUED))
      expect(table.find(entry.key)).toBe(entry);
    expect(first).toBeDefined();
  });

  test.each([
    ['objects', (i: number) => ({ i })],
    ['symbols', (i: number) => Symbol(`${i}`)],
    ['bigints', (i: number) => BigInt(i)],
    ['long strings', (i: number) => `${i}`.padEnd(257)],
  ])('%s are never kept', (_, keyOf) => {
    const table = new ItemTable<unknown>();
    const entries = Array.from({ length: 1_000 }, (_, i) => use(table, keyOf(i)));
    for (const entry of entries) table.release(entry);
    expect(table.all.size).toBe(0);
  });
});
