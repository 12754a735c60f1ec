import { EmbeddedBroker } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { newTask, QUEUE, take } from '../../../conformance/broker/support.ts';

async function open(): Promise<EmbeddedBroker> {
  return EmbeddedBroker.open({ clock: new ManualClock() });
}

describe('a hint', () => {
  test('comes after the operation, and once for all of a turn', async () => {
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

  test('that a group has grown comes once for those that follow each other', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ grouped: (_, group) => heard.push(group) });
    await Promise.all(['x', 'x', 'y', 'x'].map((group) => broker.enqueue(newTask({ group }))));
    expect(heard).toEqual(['x', 'y', 'x']);
  });

  test('that a task is settled is about every one', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ settled: (_, id) => heard.push(id) });
    await broker.enqueueMany(['a', 'b', 'c'].map((id) => newTask({ id })));
    await Promise.all((await broker.dequeue(QUEUE, 3, 1_000)).map((task) => broker.complete(task)));
    expect(heard).toEqual(['a', 'b', 'c']);
  });

  test('does not come for a queue that is paused: there is nothing to do', async () => {
    const broker = await open();
    await broker.enqueue(newTask());
    await broker.pause(QUEUE);
    const heard: string[] = [];
    await broker.subscribe({ work: (queue) => heard.push(queue) });
    await broker.enqueue(newTask());
    expect(heard).toEqual([]);
  });

  test('may be answered at once', async () => {
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

  test('is not told after the broker was closed; that it was is told, once', async () => {
    const broker = await open();
    const heard: string[] = [];
    await broker.subscribe({ work: () => heard.push('work'), closed: () => heard.push('closed') });
    void broker.enqueue(newTask());
    await broker.close();
    await broker.close();
    expect(heard).toEqual(['closed']);
  });

  test('reaches the one that has subscribed twice twice, and once after one of them is closed', async () => {
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
