import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { NO_TIMER, type QueueState, type TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import type { TaskStore } from '../../../../src/tasks/broker/embedded/task-store.ts';
import { newTask, putIntoEach, QUEUE } from '../../../conformance/broker/support.ts';

interface Broken {
  readonly store: TaskStore;
  readonly queue: QueueState;
  readonly row: (id: string) => TaskRow;
}

/** Damages, with the error that reports each. */
const DAMAGES: Record<string, readonly [(broken: Broken) => void, RegExp]> = {
  'a count that is off': [
    ({ queue }) => void (queue.lists.pending.size += 1),
    /the list 'pending' has size 2, but 1 rows/,
  ],
  'a wrong link back': [
    ({ row }) => {
      row('pending').previous = row('active');
    },
    /its link back is wrong/,
  ],
  'a wrong tail of a list': [
    ({ queue }) => void (queue.lists.pending.tail = undefined),
    /the list 'pending' has the wrong tail/,
  ],
  'a row whose own list is another one': [
    ({ row, queue }) => {
      row('pending').list = queue.lists.active;
    },
    /its own list is another one/,
  ],
  'a row whose id is missing': [
    ({ queue, row }) => {
      queue.deleteRow(row('retry'));
    },
    /its id is that of another row/,
  ],
  'an id without a task in a list': [
    ({ queue, row }) => {
      (queue.rows as Map<string, TaskRow>).set('ghost', row('retry'));
    },
    /8 tasks have an id, but 7 are in a list/,
  ],
  'a scheduled task without a timer entry': [
    ({ row }) => {
      row('scheduled').timer = NO_TIMER;
    },
    /'scheduled' of queue 'default', scheduled: it has no timer entry/,
  ],
  'a lease without a timer entry': [
    ({ row }) => {
      row('active').timer = NO_TIMER;
    },
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
      queue.deleteRow(row);
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

describe('checkBroker', () => {
  test.each(Object.entries(DAMAGES))('checkBroker finds %s', async (_, [damage, claim]) => {
    const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
    await putIntoEach(broker);
    const { store } = broker[INTERNALS]();
    const queue = store?.queues.get(QUEUE);
    if (store === undefined || queue === undefined) throw new Error('it is there');
    if (claim.source.includes('owner')) await broker.enqueue(newTask({ id: 'unique', uniqueKey: 'key' }));
    checkBroker(broker);
    damage({ store, queue, row: (id) => queue.rows.get(id) as TaskRow });
    expect(() => {
      checkBroker(broker);
    }).toThrow(claim);
  });

  test('checkBroker finds no defect in a closed broker', async () => {
    const broker = await EmbeddedBroker.open();
    await broker.close();
    checkBroker(broker);
  });
});
