import { EscapementError } from 'escapement';
import { tasksHandler } from 'escapement/tasks/http';
import { describe, expect } from 'vitest';
import { withMethods } from '../support/with-methods.ts';
import { openBench, START_MS } from '../support/bench.ts';
import { type Send, serve, serveTasks, test } from './serve.ts';

const TODAY = '2026-11-21';
const SNAPSHOT = {
  ...{ queue: 'default', memory_usage_bytes: expect.any(Number) as number, size: 1, groups: 0 },
  ...{ latency_msec: 1_250, display_latency: '1.25s', active: 0, pending: 1, aggregating: 0, scheduled: 0 },
  ...{ retry: 0, archived: 0, completed: 0, processed: 2, succeeded: 1, failed: 1, paused: false },
  timestamp: new Date(START_MS + 1_250).toISOString(),
  ...{ held: { concurrency: 0, rate: 0 }, runnable: 1, runnable_msec: 1_250 },
};
const ROW = { ...SNAPSHOT, limits: null };
const DAY = { queue: 'default', processed: 2, succeeded: 1, failed: 1, date: TODAY };

/** A queue whose one task has waited for 1.25 s, after two were processed. */
async function withHistory(): ReturnType<typeof serveTasks> {
  const served = await serveTasks();
  const { add, broker, clock, inspector, lease } = served;
  await add('a');
  await add('b');
  await broker.complete(await lease());
  await broker.archive(await lease(), { error: 'boom', isFailure: true });
  await inspector.deleteAllArchivedTasks('default');
  await add('c');
  clock.advance(1_250);
  return served;
}

describe('queues', () => {
  test('GET /api/queues returns every queue with its counts', async () => {
    const { send } = await withHistory();
    const answer = await send('/api/queues');
    expect(answer).toMatchObject({ status: 200, json: { queues: [ROW] } });
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json).toEqual({ queues: [ROW] });
  });

  test('the list of queues is empty at first', async ({ send }) => {
    expect(await send('/api/queues')).toMatchObject({ status: 200, json: { queues: [] } });
    expect(await send('/api/queue_stats')).toMatchObject({ status: 200, json: { stats: {} } });
  });

  test('queues are shown with ten days of their history', async () => {
    const { send } = await withHistory();
    const { json } = await send('/api/queues/default');
    expect(json).toMatchObject({ current: ROW });
    const { history } = json as { history: unknown[] };
    expect(history).toHaveLength(10);
    expect(history[0]).toEqual(DAY);
    expect(history[1]).toEqual({ ...DAY, processed: 0, succeeded: 0, failed: 0, date: '2026-11-20' });
  });

  test('queues have ninety days of statistics', async () => {
    const { add, send } = await withHistory();
    await add('x', { queue: '__proto__' });
    const { json } = await send('/api/queue_stats');
    const { stats } = json as { stats: Record<string, unknown[]> };
    expect(Object.keys(stats).sort()).toEqual(['__proto__', 'default']);
    expect(stats['default']).toHaveLength(90);
    expect(stats['default']?.[0]).toEqual(DAY);
  });

  test('many queues are read in several turns of the event loop', async () => {
    const { broker, add } = await openBench();
    for (let nth = 0; nth < 50; nth++) await add(`t${nth}`, { queue: `q${nth}` });
    let [inTurn, mostInTurn] = [0, 0];
    const counted = withMethods(broker, {
      history: (queue, days) => {
        if (++inTurn === 1) setImmediate(() => (inTurn = 0));
        mostInTurn = Math.max(mostInTurn, inTurn);
        return broker.history(queue, days);
      },
    });
    const send = await serve(tasksHandler({ broker: counted }));
    const { json } = await send('/api/queue_stats');
    expect(Object.keys((json as { stats: object }).stats)).toHaveLength(50);
    expect(mostInTurn).toBeLessThanOrEqual(20);
  });

  test('queues are deleted if they are empty', async () => {
    const { inspector, send } = await withHistory();
    expect(await send('/api/queues/default', { method: 'DELETE' })).toMatchObject({ status: 400 });
    await inspector.deleteAllPendingTasks('default');
    expect(await send('/api/queues/default', { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
    const answer = await send('/api/queues/default', { method: 'DELETE' });
    expect(answer).toMatchObject({ status: 404, text: "there is no queue 'default'\n" });
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  });

  test('GET groups returns the groups of a queue, and 404 for an unknown queue', async () => {
    const { add, send } = await withHistory();
    await add('g1', { group: 'g' });
    expect(await send('/api/queues/default/groups')).toMatchObject({
      ...{ status: 200, json: { stats: { size: 2, groups: 1 }, groups: [{ group: 'g', size: 1 }] } },
    });
    expect(await send('/api/queues/x/groups')).toMatchObject({ status: 404 });
  });

  test('queues that do not exist are not found', async () => {
    const { send } = await withHistory();
    expect(await send('/api/queues/x')).toMatchObject({ status: 404 });
    expect(await send('/api/queues/x/pending_tasks')).toMatchObject({ status: 404 });
    expect(await send('/api/queues/x/active_tasks')).toMatchObject({ status: 404 });
    expect(await send('/api/queues/x/limits')).toMatchObject({ status: 404 });
    expect(await send('/api/queues/x/keys')).toMatchObject({ status: 404 });
  });
});

describe('a queue that cannot be read', () => {
  const broken = new EscapementError('ERR_TASK_NOT_FOUND', 'an id without a task');

  async function withBroken(
    isBroken: (queue: string) => boolean,
  ): Promise<{ send: Send; reported: unknown[] }> {
    const { broker, add } = await openBench();
    await add('a');
    await add('b', { queue: 'ghostly' });
    const reported: unknown[] = [];
    const guarded = withMethods(broker, {
      queueStats: (queue) => (isBroken(queue) ? Promise.reject(broken) : broker.queueStats(queue)),
      history: (queue, days) => (isBroken(queue) ? Promise.reject(broken) : broker.history(queue, days)),
    });
    const onError = (error: unknown): void => void reported.push(error);
    return { send: await serve(tasksHandler({ broker: guarded, onError })), reported };
  }

  test('a queue that cannot be read is left out of the list, and is reported', async () => {
    const { send, reported } = await withBroken((queue) => queue === 'ghostly');
    const json = { queues: [{ queue: 'default' }] };
    expect(await send('/api/queues')).toMatchObject({ status: 200, json });
    const stats = await send('/api/queue_stats');
    expect(Object.keys((stats.json as { stats: object }).stats)).toEqual(['default']);
    expect(reported).toEqual([broken, broken]);
  });

  test('the list of queues is an error if no queue can be read', async () => {
    const { send } = await withBroken(() => true);
    expect((await send('/api/queues')).status).toBe(404);
  });
});

describe('limits and keys', () => {
  const LIMITS = { concurrency: 5, perKey: { concurrency: 1, rate: { tasks: 10, perMs: 60_000 } } };
  const set = (body: unknown): { method: string; body: unknown } => ({ method: 'POST', body });

  test('limits of a queue are set, shown and removed; setting them creates the queue', async () => {
    const { inspector, send } = await serveTasks();
    expect(await send('/api/queues/mail/limits', set(LIMITS))).toMatchObject({ status: 204, text: '' });
    expect(await inspector.limits('mail')).toEqual(LIMITS);
    const { json } = await send('/api/queues/mail/limits');
    expect(json).toMatchObject({ stats: { queue: 'mail' }, limits: LIMITS });
    expect((await send('/api/queues')).json).toMatchObject({ queues: [{ queue: 'mail', limits: LIMITS }] });
    expect((await send('/api/queues/mail')).json).toMatchObject({ current: { limits: LIMITS } });
    expect(await send('/api/queues/mail/limits', { method: 'DELETE' })).toMatchObject({ status: 204 });
    expect(await inspector.limits('mail')).toBeUndefined();
    expect((await send('/api/queues/mail')).json).toMatchObject({ current: { limits: null } });
  });

  test.each([
    [{ concurrency: 0 }, 'limits.concurrency must be an integer of at least 1. Received 0'],
    [{ limit: 1 }, 'unknown field "limit"'],
    [[], 'the body must be an object'],
  ])('the limits %j are refused, and nothing changes', async (body, message) => {
    const { inspector, send } = await serveTasks();
    await send('/api/queues/mail/limits', set({ concurrency: 1 }));
    const { status, text } = await send('/api/queues/mail/limits', set(body));
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
    expect(await inspector.limits('mail')).toEqual({ concurrency: 1 });
  });

  test('keys are listed in pages, with what holds them back; the row of the queue counts what is held', async () => {
    const { add, clock, inspector, lease, send } = await serveTasks();
    await inspector.setLimits('default', { perKey: { rate: { tasks: 1, perMs: 10_000 } } });
    for (const [id, key] of Object.entries({ a: 'x', b: 'x', c: 'x', d: 'y' })) await add(id, { key });
    expect((await lease()).message.id).toBe('a');
    clock.advance(1_000);
    const { json } = await send('/api/queues/default/keys');
    const { keys, stats } = json as { keys: { key: string }[]; stats: object };
    expect(keys.toSorted((one, other) => one.key.localeCompare(other.key))).toEqual([
      { key: 'x', pending: 2, active: 1, held_by: 'rate', again_in_msec: 9_000 },
      { key: 'y', pending: 1, active: 0, held_by: null, again_in_msec: null },
    ]);
    expect(stats).toMatchObject({ pending: 3, runnable: 1, held: { concurrency: 0, rate: 2 } });
    expect(stats).toMatchObject({ runnable_msec: 1_000 });
    const pages = await Promise.all(
      [1, 2, 3].map((page) => send(`/api/queues/default/keys?size=1&page=${page}`)),
    );
    expect(pages.map((page) => (page.json as { keys: unknown[] }).keys.length)).toEqual([1, 1, 0]);
    await inspector.pauseQueue('default');
    expect((await send('/api/queues')).json).toMatchObject({ queues: [{ runnable: 0 }] });
  });
});
