import { EmbeddedBroker } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { newTask, QUEUE, take } from '../../../conformance/broker/support.ts';

async function open(): Promise<EmbeddedBroker> {
  return EmbeddedBroker.open({ clock: new ManualClock() });
}

describe('a notification', () => {
  test('a work notification comes after the operation, once for all operations of a turn', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ work: (queue) => heard.push(queue) });
    const added = Array.from({ length: 100 }, (_, i) =>
      broker.enqueue(newTask({ queue: i % 2 === 0 ? 'a' : 'b' })),
    );
    expect(heard).toEqual([]);
    await Promise.all(added);
    expect(heard).toEqual(['a', 'b']);
    await broker.enqueue(newTask({ queue: 'a' }));
    expect(heard).toEqual(['a', 'b', 'a']);
  });

  test('a group notification comes once for tasks that follow each other', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ grouped: (_, group) => heard.push(group) });
    await Promise.all(['x', 'x', 'y', 'x'].map((group) => broker.enqueue(newTask({ group }))));
    expect(heard).toEqual(['x', 'y', 'x']);
  });

  test('a settled notification comes for every task', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ settled: (_, id) => heard.push(id) });
    await broker.enqueueMany(['a', 'b', 'c'].map((id) => newTask({ id })));
    await Promise.all((await broker.dequeue(QUEUE, 3, 1_000)).map((task) => broker.complete(task)));
    expect(heard).toEqual(['a', 'b', 'c']);
  });

  test('a paused queue causes no work notification', async () => {
    const broker = await open();
    await broker.enqueue(newTask());
    await broker.pause(QUEUE);
    const heard: string[] = [];
    await broker.subscribe({ work: (queue) => heard.push(queue) });
    await broker.enqueue(newTask());
    expect(heard).toEqual([]);
  });

  test('a listener may call the broker', async () => {
    const broker = await open();
    const done: string[] = [];
    await broker.subscribe({
      work: (queue) => {
        void take(broker, queue).then(async (task) => {
          await broker.complete(task);
          done.push(task.message.id);
        });
      },
    });
    await broker.enqueue(newTask({ id: 'a' }));
    await broker.enqueue(newTask({ id: 'b' }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(done).toEqual(['a', 'b']);
  });

  test('a closed broker notifies its listeners once that it is closed, and of nothing else', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ work: () => heard.push('work'), closed: () => heard.push('closed') });
    void broker.enqueue(newTask());
    await broker.close();
    await broker.close();
    expect(heard).toEqual(['closed']);
  });

  test('a listener with two subscriptions is notified twice, and once after one of them is closed', async () => {
    const broker = await open();
    const heard: string[] = [];
    const listener = { work: (queue: string) => heard.push(queue) };
    const [first] = [await broker.subscribe(listener), await broker.subscribe(listener)];
    await broker.enqueue(newTask());
    expect(heard).toHaveLength(2);
    await first.close();
    await broker.enqueue(newTask());
    expect(heard).toHaveLength(3);
  });
});
