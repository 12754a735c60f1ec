import { getHeapSpaceStatistics } from 'node:v8';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import type { Journal } from '../../../../src/tasks/broker/embedded/journal.ts';
import { Index, NO_TIMER, RowsByTime, TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import type { QueueState } from '../../../../src/tasks/broker/embedded/queue-state.ts';
import { TaskStore } from '../../../../src/tasks/broker/embedded/task-store.ts';
import { LONG_MS, newTask, putIntoEach, QUEUE } from '../../../conformance/broker/support.ts';
import { folderOfTest } from '../../../folder.ts';
import { propertyRuns } from '../../../runs.ts';

test('an index that is emptied again and again leaves no old table that keeps later values in memory', () => {
  const [VALUES, ROUNDS, VALUE_BYTES] = [1_000, 5, 800];
  const index = new Index<unknown>();
  const fill = (valueOf: (i: number) => unknown): void => {
    for (let i = 0; i < VALUES; i++) index.set(`${i}`, valueOf(i));
  };
  const empty = (): void => {
    for (let i = 0; i < VALUES; i++) index.delete(`${i}`);
  };
  const oldBytes = (): number =>
    getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')?.space_used_size ?? NaN;
  fill(Number); // nothing that V8 would see survive, and then allocate in the old generation
  gc?.(); // its table is in the old generation now
  empty();
  const before = oldBytes();
  for (let round = 0; round < ROUNDS; round++) {
    fill((i) => new Array<number>(VALUE_BYTES / 8).fill(i));
    empty();
    for (let age = 0; age < 2; age++) gc?.({ type: 'minor' }); // what survives is in the old generation
  }
  expect(index.map.size).toBe(0);
  expect(oldBytes() - before).toBeLessThan((VALUES * VALUE_BYTES) / 2);
});

describe('RowsByTime', () => {
  let serial = 0;

  function makeRow(atMs: number): TaskRow {
    const row = new TaskRow(newTask().message);
    row.atMs = atMs;
    row.serial = ++serial;
    return row;
  }

  const byTime = (a: TaskRow, b: TaskRow): number => a.atMs - b.atMs || a.serial - b.serial;

  /** Without looking into rows, which lead to others. */
  function same(a: readonly TaskRow[], b: readonly TaskRow[]): boolean {
    return a.length === b.length && a.every((row, i) => row === b[i]);
  }

  test('rows are in the same order as in a sorted array after any additions and removals', () => {
    const action = fc.record({
      // Many rows, so that pages fill and split; few times, so that many rows share one.
      add: fc.array(fc.nat({ max: 50 }), { maxLength: 400, size: 'max' }),
      remove: fc.array(fc.nat(), { maxLength: 300, size: 'max' }),
      skip: fc.nat({ max: 1_000 }),
      count: fc.nat({ max: 600 }),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 6 }), (actions) => {
        const rows = new RowsByTime();
        let model: TaskRow[] = [];
        for (const { add, remove, skip, count } of actions) {
          for (const atMs of add) {
            const row = makeRow(atMs);
            rows.add(row);
            model.push(row);
          }
          model.sort(byTime);
          for (const at of remove) {
            const row = model[at % model.length];
            if (row === undefined) break;
            rows.remove(row);
            model = model.filter((other) => other !== row);
          }
          expect(rows.first === model[0]).toBe(true);
          expect(same([...rows], model)).toBe(true);
          expect(same(rows.slice(skip, count), model.slice(skip, skip + count))).toBe(true);
        }
      }),
      propertyRuns(60),
    );
  });

  test('removing a row that is not there throws', () => {
    const rows = new RowsByTime();
    expect(rows.remove.bind(rows, makeRow(1))).toThrow('no row with time 1');
    rows.add(makeRow(1));
    expect(rows.remove.bind(rows, makeRow(1))).toThrow('no row with time 1');
  });
});

interface Broken {
  readonly store: TaskStore;
  readonly queue: QueueState;
  readonly row: (id: string) => TaskRow;
}

/** Damages, with the error that reports each. */
const DAMAGES: Record<string, readonly [(broken: Broken) => unknown, RegExp]> = {
  'a count that is off': [
    ({ queue }) => void (queue.lists.pending.size += 1),
    /the list 'pending' has size 2, but 1 rows/,
  ],
  'a wrong link back': [({ row }) => (row('pending').previous = row('active')), /its link back is wrong/],
  'a wrong tail of a list': [
    ({ queue }) => void (queue.lists.pending.tail = undefined),
    /the list 'pending' has the wrong tail/,
  ],
  'a row whose own list is another one': [
    ({ row, queue }) => (row('pending').list = queue.lists.active),
    /its own list is another one/,
  ],
  'a row whose id is missing': [
    ({ queue, row }) => {
      queue.rows.delete(row('retry'));
    },
    /its id is that of another row/,
  ],
  'an id without a task in a list': [
    ({ queue }) => {
      queue.rows.add(new TaskRow(newTask({ id: 'ghost' }).message));
    },
    /8 tasks have an id, but 7 are in a list/,
  ],
  'a scheduled task without a timer entry': [
    ({ row }) => (row('scheduled').timer = NO_TIMER),
    /'scheduled' of queue 'default', scheduled: it has no timer entry/,
  ],
  'a lease without a timer entry': [
    ({ row }) => (row('active').timer = NO_TIMER),
    /its lease goes on without a timer entry/,
  ],
  'a timer entry that was cancelled': [
    ({ row, store }) => void store.timer.cancel(row('retry').timer),
    /its timer entry does not exist/,
  ],
  'a timer entry without an owner': [
    ({ store }) => void store.timer.schedule(1, () => undefined, 0),
    /entries are in the timer/,
  ],
  'an empty group': [({ queue }) => void queue.group('empty'), /group 'empty' has no tasks/],
  'a lock of a task that does not exist': [
    ({ queue }) => {
      const row = queue.rows.get('unique') as TaskRow;
      queue.take(row);
      queue.rows.delete(row);
    },
    /its owner 'unique' does not exist/,
  ],
  'a lock of a task with another key': [
    ({ row, store }) => {
      store.locks.take('other', row('unique'), 1);
    },
    /its owner's key is 'key'/,
  ],
};

test.each(Object.entries(DAMAGES))('checkBroker finds %s', async (_, [damage, claim]) => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  await putIntoEach(broker);
  const { store } = broker[INTERNALS]();
  const queue = store?.queues.get(QUEUE);
  if (store === undefined || queue === undefined) throw new Error('it is there');
  if (claim.source.includes('owner')) await broker.enqueue(newTask({ id: 'unique', uniqueKey: 'key' }));
  checkBroker(broker);
  damage({ store, queue, row: (id) => queue.rows.get(id) as TaskRow });
  expect(checkBroker.bind(undefined, broker)).toThrow(claim);
});

test('checkBroker finds no defect in a closed broker', async () => {
  const broker = await EmbeddedBroker.open();
  await broker.close();
  checkBroker(broker);
});

function firstOf({ queues }: TaskStore): TaskRow {
  return queues.get(QUEUE)?.lists.pending.head as TaskRow;
}

/** Differences between the memory and the folder, with the error that reports each. */
const DIFFERENCES: Record<string, readonly [(store: TaskStore) => unknown, RegExp]> = {
  'a task that has changed': [
    (store) => (firstOf(store).progress = 'x'),
    /task 'first' of queue 'default' is .*"progress":"x"/,
  ],
  'a task that is not in memory': [
    (store) => {
      store.queues.get(QUEUE)?.rows.delete(firstOf(store));
    },
    /the log has other tasks of queue 'default'/,
  ],
  'another order': [
    ({ queues }) => {
      for (const row of queues.get(QUEUE)?.lists.pending ?? []) row.serial = -row.serial;
    },
    /task 'first' .*"serial":-/,
  ],
  'a queue that is paused': [
    ({ queues }) => {
      for (const queue of queues.values()) queue.isPaused = true;
    },
    /queue 'default' is .*"isPaused":false.*"isPaused":true/,
  ],
  'a queue that is not in the log': [(store) => void store.openQueue('other'), /names of queues/],
  'a lock that is not in the log': [
    (store) => {
      store.locks.free(firstOf(store));
    },
    /task 'first' .*"hasLock":true.*"hasLock":false/,
  ],
  'bytes that are counted twice': [
    ({ journal }) => void ((journal as Journal).live.bytes += 100),
    /bytes of the log are live, but \d+ are counted/,
  ],
};

async function openFolder(clock = new ManualClock()): Promise<EmbeddedBroker> {
  const broker = await EmbeddedBroker.open({ clock, dataPath: folderOfTest(), durability: 'os' });
  onTestFinished(() => broker.close());
  return broker;
}

test.each(Object.entries(DIFFERENCES))('checkBrokerLog finds %s', async (_, [change, claim]) => {
  const broker = await openFolder();
  await broker.enqueue(newTask({ id: 'first', uniqueKey: 'key' }));
  await broker.enqueue(newTask({ id: 'second' }));
  await checkBrokerLog(broker);
  change(broker[INTERNALS]().store as TaskStore);
  await expect(checkBrokerLog(broker)).rejects.toThrow(claim);
});

test('checkBrokerLog accepts a bucket that is full at this time, whose times on two clocks differ by a rounding error', async () => {
  const clock = new ManualClock({ nowMs: 68_000, wallMs: 1_800_000_067_000 });
  const broker = await openFolder(clock);
  await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 3, perMs: 2_000 } } });
  for (let task = 1; task <= 3; task++) await broker.enqueue(newTask());
  await broker.dequeue(QUEUE, 3, LONG_MS);
  clock.advance(2_000);
  await checkBrokerLog(broker);
});

test('checkBrokerLog has nothing to check in a broker without a folder, and in a closed one', async () => {
  const broker = await openFolder();
  await broker.close();
  await checkBrokerLog(broker);
  await checkBrokerLog(await EmbeddedBroker.open());
});
