import { describe, expect, it } from 'vitest';
import { START_MS } from '../../tasks/support/bench.ts';
import { announceServer, openTarget, tasksCommand, withEveryState, WAYS } from './support/tasks-command.ts';

const at = (ms: number): string => new Date(START_MS + ms).toISOString();

describe.each(WAYS)('escapement tasks, over %s', (way) => {
  it('prints statistics', async () => {
    const { add, command, json } = await withEveryState(way);
    await add('other', { queue: 'low' });
    const { stdout, code } = await command('stats');
    expect(stdout).toMatch(/^Tasks by state\n/);
    expect(stdout).toMatch(/│ 1 +│ 2 +│ 1 +│ 1 +│ 1 +│ 1 +│ 1 +│\n/);
    expect(stdout).toMatch(/│ low +│ +1 │/);
    expect(stdout).toMatch(/│ 3 +│ 2 +│ 66\.67 % +│/);
    expect(code).toBe(0);
    expect((await json('stats')).json).toMatchObject({
      aggregate: {
        ...{
          size: 8,
          active: 1,
          pending: 2,
          aggregating: 1,
          scheduled: 1,
          retry: 1,
          archived: 1,
          completed: 1,
        },
        ...{ processed: 3, failed: 2, timestamp: at(500) },
      },
      queues: [
        { queue: 'default', size: 7 },
        { queue: 'low', size: 1 },
      ],
    });
  });

  it('prints statistics without queues', async () => {
    const { command, json } = await openTarget(way);
    expect((await command('stats')).code).toBe(0);
    expect((await json('stats')).json).toMatchObject({ aggregate: { size: 0 }, queues: [] });
  });

  it('lists servers with their runs', async () => {
    const bench = await openTarget(way);
    await announceServer(bench);
    const { stdout } = await bench.command('server', 'list');
    expect(stdout).toMatch(/│ machine │ 7 +│ active │ 1\/10 +│ default:6 low:1 │ now +│/);
    const worker = {
      ...{ taskId: 'active', taskType: 'work', queue: 'default', taskPayload: 'p', startedAt: at(0) },
      ...(way !== 'http'
        ? { taskPayloadEncoding: 'utf8', deadline: at(9_000) }
        : { taskPayloadEncoding: 'shown' }),
    };
    expect((await bench.json('server', 'ls')).json).toEqual({
      servers: [
        {
          ...{ id: 's1', host: 'machine', pid: 7, status: 'active', concurrency: 10, strictPriority: false },
          ...{ queues: { default: 6, low: 1 }, startedAt: at(0), activeWorkers: [worker] },
        },
      ],
    });
  });

  it('lists schedules and the tasks that they have enqueued', async () => {
    const { broker, command, json } = await openTarget(way);
    const entry = { id: 'e1', spec: '@every 1m', taskType: 'report', payload: Buffer.from('{}') };
    const more = { options: ['Queue("low")'], nextEnqueueAtMs: START_MS + 60_500, prevEnqueueAtMs: 0 };
    await broker.announceScheduler('s', () => [{ ...entry, ...more }], 600_000);
    await broker.recordEnqueueEvent('e1', { taskId: 't1', atMs: START_MS - 60_000 });
    await broker.recordEnqueueEvent('e1', { taskId: 't2', atMs: START_MS });
    const { stdout } = await command('cron', 'ls');
    expect(stdout).toMatch(/│ e1 +│ @every 1m │ report │ \{\} +│ Queue\("low"\) │ in 1m │ - +│/);
    expect((await json('cron', 'list')).json).toEqual({
      entries: [
        {
          ...{ id: 'e1', spec: '@every 1m', taskType: 'report', taskPayload: '{}' },
          ...{ taskPayloadEncoding: way !== 'http' ? 'utf8' : 'shown', options: ['Queue("low")'] },
          ...{ nextEnqueueAt: at(60_500), prevEnqueueAt: null },
        },
      ],
    });
    const history = await command('cron', 'history', 'e1', '--size', '1');
    expect(history.stdout).toMatch(/^e1\n(.*\n)*│ t2 +│ 2026-11-21 12:00:00 UTC │ now │\n/);
    expect(history.stdout).not.toContain('t1');
    expect((await json('cron', 'history', 'e1', 'none')).json).toEqual({
      ...{ page: 1, size: 30, failed: [] },
      entries: [
        {
          id: 'e1',
          events: [
            { taskId: 't2', enqueuedAt: at(0) },
            { taskId: 't1', enqueuedAt: at(-60_000) },
          ],
        },
        { id: 'none', events: [] },
      ],
    });
  });

  it('lists groups', async () => {
    const { add, command, json } = await withEveryState(way);
    await add('another', { group: 'h' });
    expect((await command('group', 'ls', '-q', 'default')).stdout).toMatch(/│ g +│ +1 │\n│ h +│ +1 │/);
    expect((await json('group', 'list', '--queue', 'default')).json).toEqual({
      queue: 'default',
      groups: [
        { group: 'g', size: 1 },
        { group: 'h', size: 1 },
      ],
    });
  });

  it('accepts its options before and after the words', async () => {
    const { command } = await withEveryState(way);
    const before = await command('--json', 'group', 'ls', '-q', 'default');
    expect(JSON.parse(before.stdout)).toMatchObject({ groups: [{ group: 'g' }] });
    for (const flag of ['--http_header', '--http-header']) {
      for (const words of [
        [flag, 'nonsense', 'queue', 'ls'],
        ['queue', 'ls', flag, 'nonsense'],
      ]) {
        const { stderr, code } = await tasksCommand([...words, '-u', 'http://127.0.0.1:9']);
        expect([stderr, code]).toEqual(["escapement: --http_header must be 'Name: value'\n", 2]);
      }
    }
  });
});
