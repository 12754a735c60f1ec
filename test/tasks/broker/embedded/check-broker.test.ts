import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import type { QueueState } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { NO_TIMER, type TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import type { TaskStore } from '../../../../src/tasks/broker/embedded/task-store.ts';
import { newTask, putIntoEach, QUEUE } from '../../../conformance/broker/support.ts';

interface Broken {
  readonly store: TaskStore;
  readonly queue: QueueState;
  readonly row: (id: string) => TaskRow;
}

/** What can be wrong with a broker, and how it is said. */
const DAMAGES: Record<string, readonly [(broken: Broken) => void, RegExp]> = {
  'a count that is off': [
    ({ queue }) => void (queue.lists.pending.size += 1),
    /2 are pending, but there are 1/,
  ],
  'a link back that leads elsewhere': [
    ({ row }) => {
      row('pending').previous = row('active');
    },
    /its link back leads elsewhere/,
  ],
  'a list that ends elsewhere': [
    ({ queue }) => void (queue.lists.pending.tail = undefined),
    /ends elsewhere/,
  ],
  'a row that says it is elsewhere': [
    ({ row, queue }) => {
      row('pending').list = queue.lists.active;
    },
    /it says that it is elsewhere/,
  ],
  'an id that leads nowhere': [({ queue }) => void queue.rows.delete('retry'), /its id leads elsewhere/],
  'an id of a task that is nowhere': [
    ({ queue, row }) => {
      queue.rows.set('ghost', row('retry'));
    },
    /8 tasks have an id, but 7 are in a list/,
  ],
  'a task that waits for no moment': [
    ({ row }) => {
      row('scheduled').timer = NO_TIMER;
    },
    /'scheduled' of queue 'default', scheduled: it waits for no moment/,
  ],
  'a lease that nobody will see end': [
    ({ row }) => {
      row('active').timer = NO_TIMER;
    },
    /its lease goes on, and nobody will see it end/,
  ],
  'a timer that was cancelled': [
    ({ row, store }) => void store.timer.cancel(row('retry').timer),
    /is in no timer/,
  ],
  'a timer of nobody': [
    ({ store }) => void store.timer.schedule(1, () => undefined, 0),
    /entries are in the timer/,
  ],
  'an empty group': [({ queue }) => void queue.group('empty'), /group 'empty' has no tasks/],
  'a lock of a task that is gone': [
    ({ queue }) => {
      queue.take(queue.rows.get('unique') as TaskRow);
      queue.rows.delete('unique');
    },
    /its owner 'unique' is gone/,
  ],
  'a lock of a task with another key': [
    ({ row, store }) => {
      store.locks.take('other', row('unique'), 1);
    },
    /its owner's key is 'key'/,
  ],
};

describe('checkBroker', () => {
  test.each(Object.entries(DAMAGES))('finds %s', async (_, [damage, claim]) => {
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

  test('has nothing to say of a broker that is closed', async () => {
    const broker = await EmbeddedBroker.open();
    await broker.close();
    checkBroker(broker);
  });
});
