import { describe, expect } from 'vitest';
import { serveTasks, test } from './serve.ts';

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
    [{ rate: { tasks: 1 } }, 'limits.rate.perMs must be'],
    [{ perKey: { rates: {} } }, 'rates'],
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

  test('the limits and keys of a queue that does not exist are not found', async ({ send }) => {
    expect(await send('/api/queues/x/limits')).toMatchObject({ status: 404 });
    expect(await send('/api/queues/x/keys')).toMatchObject({ status: 404 });
  });
});
