import { describe, expect, it } from 'vitest';
import { at, START_MS } from '../../tasks/support/bench.ts';
import {
  announceServer,
  openTarget,
  refusal,
  tasksCommand,
  type Way,
  WAYS,
  withEveryState,
} from './support/tasks-command.ts';

const any = expect.any(Number) as number;

/** As JSON says it; what HTTP does not know is left out. */
function everyStateJson(way: Way): object {
  return {
    ...{ queue: 'default', paused: false, size: 7, groups: 1 },
    ...{ active: 1, pending: 1, aggregating: 1, scheduled: 1, retry: 1, archived: 1, completed: 1 },
    ...{ latencyMs: 500, memoryUsageBytes: any, processed: 3, failed: 2 },
    ...(way !== 'http' ? { processedTotal: 3, failedTotal: 2 } : {}),
    ...{ held: { concurrency: 0, rate: 0 }, runnableMs: 500 },
    timestamp: new Date(START_MS + 500).toISOString(),
  };
}

describe.each(WAYS)('escapement tasks queue, over %s', (way) => {
  it('tasks queue lists queues', async () => {
    const { add, command, json } = await withEveryState(way);
    await add('other', { queue: 'low' });
    const { stdout, stderr, code } = await command('queue', 'list');
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/│ default +│ run +│ +7 │ +500ms │ +3 │ +2 │ +66\.67 % │/);
    expect(stdout).toMatch(/│ low +│ run +│ +1 │ +0ms │ +0 │ +0 │ +- │/);
    const queues = [everyStateJson(way), { queue: 'low', size: 1 }];
    expect(await json('queue', 'ls')).toMatchObject({ json: { queues }, code: 0 });
  });

  it('tasks queue inspects queues', async () => {
    const { command, json } = await withEveryState(way);
    const { stdout } = await command('queue', 'inspect', 'default');
    expect(stdout).toMatch(/^queue +default\nstate +run\nsize +7\nactive +1\n/);
    const queues = [{ ...everyStateJson(way), limits: null }];
    expect(await json('queue', 'inspect', 'default')).toEqual({ json: { queues, failed: [] }, code: 0 });
  });

  it('tasks queue shows the history day by day', async () => {
    const { command, json } = await withEveryState(way);
    const history = await json('queue', 'history', 'default', '-x', '2');
    const days = [
      { date: '2026-11-21', processed: 3, failed: 2 },
      { date: '2026-11-20', processed: 0, failed: 0 },
    ];
    expect(history.json).toEqual({ queues: [{ queue: 'default', days }], failed: [] });
    const long = await json('queue', 'history', 'default', '--days', '20');
    expect((long.json as { queues: { days: object[] }[] }).queues[0]?.days).toHaveLength(20);
    const { stdout } = await command('queue', 'history', 'default');
    expect(stdout).toMatch(/^default\n/);
    expect(stdout.match(/│ 2026-11-\d\d │/g)).toHaveLength(10);
  });

  it('tasks queue pauses and resumes queues', async () => {
    const { add, command, inspector, json } = await openTarget(way);
    await add('a', { queue: 'one' });
    await add('b', { queue: 'two' });
    expect(await command('queue', 'pause', 'one', 'two')).toEqual({
      ...{ stdout: 'one: paused\ntwo: paused\n', stderr: '', code: 0 },
    });
    expect((await inspector.getQueueInfo('two')).paused).toBe(true);
    expect((await command('queue', 'ls')).stdout).toMatch(/│ two +│ paused │/);
    const resumed = await json('queue', 'unpause', 'one');
    expect(resumed).toEqual({ json: { resumed: ['one'], failed: [] }, code: 0 });
    expect(await command('queue', 'resume', 'two')).toMatchObject({ stdout: 'two: resumed\n', code: 0 });
    expect((await inspector.getQueueInfo('one')).paused).toBe(false);
  });

  it('tasks queue goes on after a failure, with the exit code 1; with 2 if all failed', async () => {
    const { add, command, inspector, json } = await openTarget(way);
    await add('a', { queue: 'one' });
    await add('b', { queue: 'two' });
    const paused = await command('queue', 'pause', 'one', 'nonsense', 'two');
    expect(paused.stdout).toBe('one: paused\ntwo: paused\n');
    expect(paused.stderr).toMatch(/^escapement: [^\n]*nonsense[^\n]*\n$/);
    expect(paused.code).toBe(1);
    expect((await inspector.getQueueInfo('two')).paused).toBe(true);
    expect(await inspector.queues()).not.toContain('nonsense');
    const again = await command('queue', 'pause', 'one');
    expect(again).toMatchObject({ stdout: '', code: 2 });
    expect(again.stderr).toMatch(/is paused/);
    const inspected = await json('queue', 'inspect', 'one', 'nonsense');
    expect(inspected).toMatchObject({
      json: {
        queues: [{ queue: 'one' }],
        failed: [{ queue: 'nonsense', message: expect.any(String) as string }],
      },
      code: 1,
    });
  });

  it('tasks queue removes empty queues', async () => {
    const { add, broker, command, inspector, lease } = await openTarget(way);
    await add('a', { queue: 'one' });
    const refused = await command('queue', 'rm', 'one');
    expect(refused).toMatchObject({ stdout: '', code: 2 });
    expect(refused.stderr).toMatch(/has 1 task/);
    expect(refused.stderr.includes('; --force removes them too')).toBe(way !== 'http');
    await broker.complete(await lease('one'));
    expect(await command('queue', 'remove', 'one')).toMatchObject({ stdout: 'one: removed\n', code: 0 });
    expect(await inspector.queues()).toEqual([]);
  });
});

describe.each(WAYS)('the limits and keys of a queue, over %s', (way) => {
  const SET = ['--concurrency', '5', '--rate', '100/1s', '--key_concurrency', '1', '--key-rate', '10/1m'];
  const LIMITS = {
    ...{ concurrency: 5, rate: { tasks: 100, perMs: 1_000 } },
    perKey: { concurrency: 1, rate: { tasks: 10, perMs: 60_000, burst: 2 } },
  };

  it('queue limits sets all limits of a queue, shows them and removes them', async () => {
    const { command, inspector, json } = await openTarget(way);
    const shown =
      'concurrency      5\nrate             100/1s, burst 100\n' +
      'key concurrency  1\nkey rate         10/1m, burst 2\n';
    expect(await command('queue', 'limits', 'mail', ...SET, '--key_burst', '2')).toEqual({
      ...{ stdout: `queue            mail\n${shown}`, stderr: '', code: 0 },
    });
    expect(await inspector.limits('mail')).toEqual(LIMITS);
    const limits = await json('queue', 'limits', 'mail');
    expect(limits).toEqual({ json: { queue: 'mail', limits: LIMITS }, code: 0 });
    expect((await command('queue', 'inspect', 'mail')).stdout).toContain(`\n${shown}`);
    expect((await json('queue', 'inspect', 'mail')).json).toMatchObject({ queues: [{ limits: LIMITS }] });
    await command('queue', 'limits', 'mail', '--concurrency', '2');
    expect(await inspector.limits('mail')).toEqual({ concurrency: 2 });
    expect((await command('queue', 'limits', 'mail', '--none')).stdout).toBe('queue   mail\nlimits  none\n');
    expect(await inspector.limits('mail')).toBeUndefined();
  });

  it('queue keys lists keys with what holds them back, and queue ls and inspect count what is held', async () => {
    const { add, command, inspector, json, lease } = await openTarget(way);
    await inspector.setLimits('default', { perKey: { rate: { tasks: 1, perMs: 60_000 } } });
    for (const [id, key] of Object.entries({ a: 'x', b: 'x', c: 'y' })) await add(id, { key });
    await add('d');
    await lease();
    const { stdout } = await command('queue', 'keys', 'default');
    expect(stdout).toMatch(/│ key │ pending │ active │ held by │ again in │\n/);
    expect(stdout).toMatch(/│ x +│ +1 │ +1 │ rate +│ +1m │\n/);
    expect(stdout).toMatch(/│ y +│ +1 │ +0 │ - +│ +- │\n/);
    expect(stdout).toMatch(/│ - +│ +1 │ +0 │ - +│ +- │\n/);
    const { keys } = (await json('queue', 'keys', 'default')).json as { keys: { key: string }[] };
    expect(keys.toSorted((one, other) => one.key.localeCompare(other.key))).toEqual([
      { key: '', pending: 1, active: 0 },
      { key: 'x', pending: 1, active: 1, heldBy: 'rate', againInMs: 60_000 },
      { key: 'y', pending: 1, active: 0 },
    ]);
    const second = await json('queue', 'keys', 'default', '--page', '2', '--size', '2');
    expect(second.json).toMatchObject({ queue: 'default', page: 2, size: 2, keys: [{}] });
    expect((await command('queue', 'ls')).stdout).toMatch(/│ default +│ run +│ +4 │ +1 │/);
    expect((await command('queue', 'inspect', 'default')).stdout).toMatch(/\nheld +1 by rate\n/);
    expect((await command('task', 'inspect', '-q', 'default', '-i', 'a')).stdout).toMatch(/\nkey +x\n/);
  });
});

it.each([
  [['queue', 'history', 'default', '-x', '0'], /from 1 to 90/],
  [['queue', 'inspect'], /missing required argument/],
  [['queue', 'inspect', ' '], /must not be blank/],
  [['queue', 'nonsense'], /unknown command 'nonsense'/],
  [['queue'], /Usage: escapement tasks queue/],
])('the arguments %j of tasks queue are wrong usage', async (words, message) => {
  const { command } = await openTarget('broker');
  const { stdout, stderr, code } = await command(...words);
  expect(stderr).toMatch(message);
  expect([stdout, code]).toEqual(['', 2]);
});

it.each([
  [['--rate', '100'], /It must be a rate: '100\/1s'/],
  [['--rate', '0/1s'], /at least 1/],
  [['--rate', '1/0s'], /at least 1ms/],
  [['--burst', '5'], /a burst needs --rate/],
  [['--key_burst', '5', '--rate', '1/1s'], /a burst needs --key_rate/],
  [['--none', '--concurrency', '1'], /--none removes all limits/],
])('the limits %j are wrong usage', async (words, message) => {
  const { command, inspector } = await openTarget('broker');
  const { stderr, code } = await command('queue', 'limits', 'mail', ...words);
  expect(stderr).toMatch(message);
  expect([code, await inspector.queues()]).toEqual([2, []]);
});

it('queue remove --force removes the tasks too', async () => {
  const { add, command, inspector } = await openTarget('broker');
  await add('a', { queue: 'one' });
  expect(await command('queue', 'delete', '--force', 'one')).toMatchObject({ stdout: 'one: removed\n' });
  expect(await inspector.queues()).toEqual([]);
});

it('queue remove --force is not available over HTTP', async () => {
  const { add, command, inspector } = await openTarget('http');
  await add('a', { queue: 'one' });
  const { stderr, code } = await command('queue', 'rm', '-f', 'one');
  expect(stderr).toMatch(/--force.* is not available over the HTTP API\n$/);
  expect([code, await inspector.queues()]).toEqual([2, ['one']]);
});

describe.each(WAYS)('escapement tasks, over %s', (way) => {
  it('tasks stats prints statistics', async () => {
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
        ...{ size: 8, active: 1, pending: 2, aggregating: 1, scheduled: 1, retry: 1 },
        ...{ archived: 1, completed: 1 },
        ...{ processed: 3, failed: 2, timestamp: at(500) },
      },
      queues: [
        { queue: 'default', size: 7 },
        { queue: 'low', size: 1 },
      ],
    });
  });

  it('tasks stats prints statistics without queues', async () => {
    const { command, json } = await openTarget(way);
    expect((await command('stats')).code).toBe(0);
    expect((await json('stats')).json).toMatchObject({ aggregate: { size: 0 }, queues: [] });
  });

  it('tasks server lists servers with their runs', async () => {
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

  it('tasks cron lists schedules and the tasks that they have enqueued', async () => {
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
          ...{ nextEnqueueAt: at(60_500) },
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

  it('tasks group lists groups', async () => {
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

  it('tasks accepts its options before and after the words', async () => {
    const { command } = await withEveryState(way);
    const before = await command('--json', 'group', 'ls', '-q', 'default');
    expect(JSON.parse(before.stdout)).toMatchObject({ groups: [{ group: 'g' }] });
    for (const flag of ['--http_header', '--http-header']) {
      for (const words of [
        [flag, 'nonsense', 'queue', 'ls'],
        ['queue', 'ls', flag, 'nonsense'],
      ]) {
        const result = await tasksCommand([...words, '-u', 'http://127.0.0.1:9']);
        expect(result).toEqual(refusal("--http_header must be 'Name: value'"));
      }
    }
  });
});
