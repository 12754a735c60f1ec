import { getEventListeners } from 'node:events';
import { describe, expect, vi } from 'vitest';
import { Inspector, MAINTENANCE_JOBS, Task, type Broker, type BrokerListener } from 'escapement/tasks';
import { settled, watch } from '../workqueue/support/outcome.ts';
import { type Bench, openBench, test, unavailable } from './support/bench.ts';
import { withMethods } from './support/with-methods.ts';

const failure = { error: 'boom', isFailure: true };

/** The broker of a bench as one that is elsewhere: it tells nothing, and has to be asked. */
function elsewhere({ broker }: Bench): Broker {
  const subscribe: Broker['subscribe'] = () => Promise.resolve({ close: () => Promise.resolve() });
  return withMethods<Broker>(broker, { maintenance: MAINTENANCE_JOBS, subscribe });
}

const ADVICE = 'A task with retentionMs is kept after it is done';

describe('waitFor', () => {
  test('waitFor resolves with the result when the task is completed', async () => {
    const { add, broker, clock, inspector, lease } = await openBench();
    await add('a', { retentionMs: 1_000 });
    const waiting = watch(inspector.waitFor('a'));
    const task = await lease();
    await clock.advanceAsync(5);
    expect(waiting.state).toBe('pending');
    await broker.writeResult(task, Buffer.from('done'));
    await broker.complete(task);
    await settled();
    expect(waiting).toMatchObject({ state: 'resolved', value: { id: 'a', state: 'completed' } });
    expect(await inspector.waitFor('a')).toMatchObject({ result: Buffer.from('done') });
  });

  test('waitFor accepts the result of enqueue, in any queue', async () => {
    const { broker, client, inspector, lease } = await openBench();
    const info = await client.enqueue(new Task('a', 1, { queue: 'low', retentionMs: 1_000 }));
    const waiting = inspector.waitFor(info);
    const other = watch(inspector.waitFor(info.id));
    await broker.complete(await lease('low'));
    await expect(waiting).resolves.toMatchObject({ queue: 'low', state: 'completed' });
    await expect(inspector.waitFor(info.id, { queue: 'low' })).resolves.toMatchObject({ state: 'completed' });
    await settled();
    const code = expect.stringMatching(/NOT_FOUND/) as string;
    expect(other).toMatchObject({ state: 'rejected', value: { code } });
  });

  test('waitFor accepts nothing else, such as a promise of that result', async ({ client, inspector }) => {
    const enqueued = client.enqueue(new Task('a'));
    for (const [task, shown] of [
      [enqueued, '[object Promise]'],
      [undefined, 'undefined'],
    ] as const) {
      await expect(inspector.waitFor(task as never)).rejects.toThrow(
        `task must be what enqueue resolves to, or an id. Received ${shown}`,
      );
    }
  });

  test('waitFor waits through retries', async ({ add, broker, clock, inspector, lease }) => {
    await add('a', { retentionMs: 1_000 });
    const waiting = watch(inspector.waitFor('a'));
    await broker.retry(await lease(), failure, clock.wallNow() + 60_000);
    await clock.advanceAsync(60_000);
    expect(waiting.state).toBe('pending');
    await broker.complete(await lease());
    await settled();
    expect(waiting.state).toBe('resolved');
  });

  test('waitFor rejects with the last error when the task is archived', async () => {
    const { add, broker, inspector, lease } = await openBench();
    await add('a');
    const waiting = watch(inspector.waitFor('a'));
    await broker.archive(await lease(), failure);
    await settled();
    const message = "task 'a' of queue 'default' is archived: boom";
    expect(waiting).toMatchObject({ state: 'rejected', value: { code: 'ERR_TASK_ARCHIVED', message } });
    await expect(inspector.waitFor('a')).rejects.toMatchObject({ code: 'ERR_TASK_ARCHIVED' });
  });

  test('waitFor rejects when the task no longer exists', async ({ add, broker, inspector, lease }) => {
    await add('a');
    await add('b', { retentionMs: 1_000 });
    const waiting = [watch(inspector.waitFor('a')), watch(inspector.waitFor('b'))];
    await settled();
    await broker.complete(await lease());
    await inspector.deleteTask('default', 'b');
    await settled();
    const gone = "of queue 'default' no longer exists: it is done, or was deleted";
    expect(waiting.map(({ value }) => value)).toMatchObject([
      { code: 'ERR_TASK_NOT_FOUND', message: `task 'a' ${gone}. ${ADVICE}` },
      { code: 'ERR_TASK_NOT_FOUND', message: `task 'b' ${gone}` },
    ]);
  });

  test('waitFor rejects when the queue is removed', async ({ add, inspector }) => {
    await add('a', { retentionMs: 1_000 });
    const waiting = watch(inspector.waitFor('a'));
    await settled();
    await inspector.deleteQueue('default', { force: true });
    await settled();
    expect(waiting).toMatchObject({ state: 'rejected', value: { code: 'ERR_TASK_NOT_FOUND' } });
  });

  test('waitFor rejects at once if there is no such task', async ({ add, inspector }) => {
    await add('a');
    await expect(inspector.waitFor('b')).rejects.toMatchObject({
      code: 'ERR_TASK_NOT_FOUND',
      message: `queue 'default' has no task 'b'. ${ADVICE}`,
    });
  });

  test('waitFor rejects with the reason of its signal, and leaves nothing', async () => {
    const { add, broker, inspector } = await openBench();
    await add('a');
    const unsubscribed = vi.fn();
    const subscribe = broker.subscribe.bind(broker);
    const subscribed = vi.spyOn(broker, 'subscribe').mockImplementation(async (listener: BrokerListener) => {
      const subscription = await subscribe(listener);
      return { close: () => subscription.close().then(unsubscribed) };
    });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [watch(inspector.waitFor('a', { signal })), watch(inspector.waitFor('a'))];
    await settled();
    controller.abort(new Error('enough'));
    await settled();
    expect(waiting.map(({ state }) => state)).toEqual(['rejected', 'pending']);
    expect(waiting[0]?.value).toEqual(new Error('enough'));
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(unsubscribed).not.toHaveBeenCalled();
    await inspector.deleteTask('default', 'a');
    await settled();
    expect(waiting[1]?.state).toBe('rejected');
    expect(unsubscribed).toHaveBeenCalledTimes(1);
    expect(subscribed).toHaveBeenCalledTimes(1);
    await expect(inspector.waitFor('a', { signal })).rejects.toThrow('enough');
  });

  test('waitFor rejects when the inspector or the broker is closed', async ({ add, broker, inspector }) => {
    await add('a');
    const other = new Inspector({ broker });
    const waiting = [watch(inspector.waitFor('a')), watch(other.waitFor('a'))];
    await settled();
    await inspector.close();
    await expect(inspector.waitFor('a')).rejects.toMatchObject({ code: 'ERR_INSPECTOR_CLOSED' });
    await broker.close();
    await settled();
    expect(waiting.map(({ value }) => value)).toMatchObject([
      { code: 'ERR_INSPECTOR_CLOSED' },
      { code: 'ERR_BROKER_CLOSED' },
    ]);
    await expect(other.waitFor('a')).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED' });
  });

  test('waitFor reads nothing while there are no notifications', async () => {
    const { add, broker, clock, inspector } = await openBench();
    await add('a');
    const look = vi.spyOn(broker, 'task');
    watch(inspector.waitFor('a'));
    await clock.advanceAsync(30 * 86_400_000);
    expect(look).toHaveBeenCalledTimes(1);
    expect(clock.pendingWakeups).toBe(0);
  });

  test('waitFor reads the task again if it has ended during a read', async () => {
    const { add, broker, inspector, lease } = await openBench();
    await add('a', { retentionMs: 1_000 });
    const look = broker.task.bind(broker);
    let release: () => void = () => undefined;
    vi.spyOn(broker, 'task').mockImplementationOnce(async (queue, id) => {
      const record = await look(queue, id);
      await new Promise<void>((resolve) => (release = resolve));
      return record;
    });
    const waiting = watch(inspector.waitFor('a'));
    await settled();
    await broker.complete(await lease());
    await settled();
    release();
    await settled();
    expect(waiting.state).toBe('resolved');
  });

  test('waitFor reads the task every second if the broker does not notify', async () => {
    const bench = await openBench();
    const inspector = new Inspector({ broker: elsewhere(bench) });
    await bench.add('a', { retentionMs: 60_000 });
    const waiting = watch(inspector.waitFor('a'));
    await bench.clock.advanceAsync(5_500);
    await bench.broker.complete(await bench.lease());
    await bench.clock.advanceAsync(499);
    expect(waiting.state).toBe('pending');
    await bench.clock.advanceAsync(1);
    await settled();
    expect(waiting.state).toBe('resolved');
  });

  test('waitFor leaves no timer', async () => {
    const bench = await openBench();
    const inspector = new Inspector({ broker: elsewhere(bench) });
    await bench.add('a');
    const controller = new AbortController();
    const waiting = watch(inspector.waitFor('a', { signal: controller.signal }));
    await settled();
    expect(bench.clock.pendingWakeups).toBe(1);
    controller.abort();
    await settled();
    expect(waiting.state).toBe('rejected');
    expect(bench.clock.pendingWakeups).toBe(0);
  });

  test('waitFor goes on waiting while the broker is unavailable', async () => {
    const { add, broker, clock, inspector, lease } = await openBench();
    await add('a', { retentionMs: 60_000 });
    await broker.complete(await lease());
    const subscribe = vi.spyOn(broker, 'subscribe').mockRejectedValueOnce(unavailable());
    const look = vi
      .spyOn(broker, 'task')
      .mockRejectedValueOnce(unavailable())
      .mockRejectedValueOnce(unavailable());
    const waiting = watch(inspector.waitFor('a'));
    await clock.advanceAsync(1_500);
    expect(waiting.state).toBe('pending');
    await clock.advanceAsync(500);
    await settled();
    expect(waiting.state).toBe('resolved');
    expect(look).toHaveBeenCalledTimes(3);
    expect(subscribe).toHaveBeenCalledTimes(2);
  });

  test.each([
    [undefined, {}],
    ['', {}],
    ['a', { queue: '' }],
    ['a', null],
    [{ id: 5, queue: 'a' }, {}],
    ['a', { signal: {} }],
  ])('waitFor rejects the arguments %j, %j', async (task, options) => {
    const { inspector } = await openBench();
    await expect(inspector.waitFor(task as string, options as object)).rejects.toThrow(TypeError);
  });
});
