import { Client, EmbeddedBroker, Server, Task } from 'escapement/tasks';
import type { Handler, TaskContext } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import { collect, isCollected } from './collect.ts';

/** A server in virtual time, and what it has shown of its runs to handlers. */
async function start(handler: Handler): Promise<{
  clock: ManualClock;
  server: Server;
  enqueue: (count: number) => Promise<void>;
  contexts: WeakRef<TaskContext>[];
}> {
  const clock = new ManualClock();
  const broker = await EmbeddedBroker.open({ clock });
  const client = new Client({ broker });
  const server = new Server({ broker, concurrency: 100, graceMs: 100 });
  const contexts: WeakRef<TaskContext>[] = [];
  await server.start((task, context) => {
    contexts.push(new WeakRef(context));
    return handler(task, context);
  });
  const enqueue = async (count: number): Promise<void> => {
    const task = new Task('job', undefined, { timeoutMs: 1_000, maxRetry: 0 });
    await client.enqueueMany(Array.from({ length: count }, () => task));
    await clock.advanceAsync(10_000);
  };
  return { clock, server, enqueue, contexts };
}

function alive(contexts: readonly WeakRef<TaskContext>[]): number {
  return contexts.filter((context) => context.deref() !== undefined).length;
}

test.each<[string, Handler]>([
  ['are done', ({ payload }, { signal }) => Promise.resolve([payload, signal])],
  [
    'were interrupted',
    (_task, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  ],
  ['were given up, and never settle', (_task, { signal }) => new Promise(() => signal)],
])('a server that goes on holds nothing of runs that %s', async (_what, handler) => {
  const { server, enqueue, contexts } = await start(handler);
  await enqueue(500);
  await enqueue(500);
  expect(contexts).toHaveLength(1_000);
  await collect();
  expect(alive(contexts.slice(0, -100))).toBe(0); // the last ones may be in a loop's hands
  await server.shutdown();
});

test('no object holds a server that was shut down, although its broker is open', async () => {
  const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
  const once = async (): Promise<WeakRef<Server>> => {
    const server = new Server({ broker });
    await server.start(() => undefined);
    await server.shutdown();
    return new WeakRef(server);
  };
  expect(await isCollected(await once())).toBe(true);
  await broker.close();
});
