import { describe, expect, it } from 'vitest';
import { Task, type TaskState } from 'escapement/tasks';
import { at } from '../../tasks/support/bench.ts';
import {
  FakeStream,
  openTarget,
  serveTasks,
  tasksCommand,
  withEveryState,
  type Way,
  WAYS,
} from './support/tasks-command.ts';

const Q = ['-q', 'default'] as const;

/** What any target says of a task whose id is its state. */
function basic(way: Way, state: TaskState): object {
  const encoding = way !== 'http' ? 'utf8' : 'shown';
  return {
    ...{ id: state, queue: 'default', type: 'work', state, maxRetry: 25 },
    ...{ payload: `{"id":"${state}"}`, payloadEncoding: encoding },
  };
}

const BY_STATE: readonly (readonly [TaskState, object, RegExp])[] = [
  ['active', { isOrphaned: false }, /│ active │ work │ \{"id":"active"\} │ no +│/],
  ['pending', {}, /│ pending │ work │/],
  ['scheduled', { nextProcessAt: at(60_000) }, /│ in 1m +│/], // 59.5 s
  ['retry', { nextProcessAt: at(5_000), retried: 1, lastError: 'boom' }, /│ in 5s +│ boom +│.*│ 1\/25 +│/],
  ['archived', { lastError: 'boom', lastFailedAt: at(0) }, /│ now +│ boom +│/],
  ['completed', { completedAt: at(0), result: 'fine' }, /│ now +│ fine +│/],
  ['aggregating', { group: 'g' }, /│ g +│/],
];

describe.each(WAYS)('escapement tasks task, over %s', (way) => {
  it.each(BY_STATE)('tasks task lists and inspects %s tasks', async (state, more, row) => {
    const { command, json } = await withEveryState(way);
    const group = state === 'aggregating' ? ['-g', 'g'] : [];
    const { stdout, stderr, code } = await command('task', 'list', ...Q, '-s', state, ...group);
    expect(stdout).toMatch(row);
    expect([stderr, code]).toEqual(['', 0]);
    const { json: listed } = await json('task', 'ls', ...Q, '--state', state, ...group, '--size', '5');
    expect(listed).toMatchObject({ queue: 'default', state, page: 1, size: 5 });
    expect((listed as { tasks: unknown[] }).tasks).toEqual([
      expect.objectContaining({ ...basic(way, state), ...more }),
    ]);
    const { json: task } = await json('task', 'inspect', ...Q, '-i', state);
    expect(task).toMatchObject({ ...basic(way, state), ...(state === 'active' ? {} : more) });
    const shown = await command('task', 'inspect', ...Q, '--id', state);
    expect(shown.stdout).toMatch(new RegExp(`^id +${state}\nqueue +default\ntype +work\nstate +${state}\n`));
    expect(shown.stdout).toMatch(new RegExp(`\npayload +{"id":"${state}"}\n`));
  });

  it('tasks task lists tasks page by page', async () => {
    const { add, json } = await openTarget(way);
    for (const id of ['a', 'b', 'c']) await add(id);
    const { json: listed } = await json('task', 'ls', ...Q, '-s', 'pending', '--page', '2', '--size', '2');
    expect(listed).toMatchObject({ page: 2, size: 2, tasks: [{ id: 'c' }] });
  });

  it('tasks task inspect prints the JSON of a TaskInfo, over HTTP without what the API lacks', async () => {
    const { inspector, json } = await withEveryState(way);
    for (const [state] of BY_STATE) {
      const info = await inspector.getTaskInfo('default', state);
      const expected = JSON.parse(JSON.stringify(info)) as Record<string, unknown>;
      const { json: printed } = await json('task', 'inspect', ...Q, '-i', state);
      if (way !== 'http') expect(printed).toEqual(expected);
      else expect(Object.keys(expected)).toEqual(expect.arrayContaining(Object.keys(printed as object)));
    }
  });

  it('tasks task runs tasks, archives and deletes them', async () => {
    const { command, inspector, json } = await withEveryState(way);
    const state = async (id: string): Promise<string> => (await inspector.getTaskInfo('default', id)).state;
    const ids = ['-i', 'scheduled', '-i', 'retry', 'archived', 'aggregating'];
    const ran = await command('task', 'run', ...Q, ...ids);
    expect(ran).toEqual({
      stdout: 'scheduled: pending\nretry: pending\narchived: pending\naggregating: pending\n',
      ...{ stderr: '', code: 0 },
    });
    expect(await state('aggregating')).toBe('pending');
    expect(await json('task', 'archive', ...Q, '--id', 'retry')).toEqual({
      ...{ json: { archived: ['retry'], failed: [] }, code: 0 },
    });
    expect(await state('retry')).toBe('archived');
    for (const verb of ['delete', 'remove', 'rm']) {
      const id = { delete: 'retry', remove: 'completed', rm: 'pending' }[verb] ?? '';
      const deleted = await command('task', verb, ...Q, '-i', id);
      expect(deleted).toEqual({ stdout: `${id}: deleted\n`, stderr: '', code: 0 });
      await expect(state(id)).rejects.toMatchObject({ code: 'ERR_TASK_NOT_FOUND' });
    }
  });

  it('tasks task reports why a change is refused, and goes on', async () => {
    const { command, json } = await withEveryState(way);
    const ran = await command('task', 'run', ...Q, 'active', 'pending', 'nonsense', 'retry');
    expect(ran).toMatchObject({ stdout: 'retry: pending\n', code: 1 });
    expect(ran.stderr.match(/^escapement: .*$/gm)).toHaveLength(3);
    for (const verb of ['archive', 'delete']) {
      const refused = await json('task', verb, ...Q, '-i', 'active');
      expect(refused).toMatchObject({ json: { failed: [{ id: 'active' }] }, code: 2 });
    }
    expect((await command('task', 'archive', ...Q, '-i', 'archived')).stderr).toMatch(/archived/);
    const missing = await command('task', 'inspect', ...Q, '-i', 'nonsense');
    expect(missing).toMatchObject({ stdout: '', code: 2 });
    expect(missing.stderr).toMatch(/^escapement: [^\n]*nonsense[^\n]*\n$/);
    for (const words of [
      ['task', 'ls', '-q', 'none', '-s', 'pending'],
      ['group', 'ls', '-q', 'none'],
    ]) {
      const { stderr, code } = await command(...words);
      expect(stderr).toMatch(/^escapement: [^\n]*none[^\n]*\n$/);
      expect(code).toBe(2);
    }
  });

  it('tasks task cancels active tasks', async () => {
    const { broker, command, json } = await withEveryState(way);
    const asked: unknown[] = [];
    await broker.subscribe({ cancel: (request) => asked.push(request) > 0 }, []);
    const { stdout, stderr, code } = await command('task', 'cancel', 'active');
    expect([stdout, stderr, code]).toEqual([
      ...[way !== 'http' ? 'active: stopping\n' : 'active: stop requested\n', '', 0],
    ]);
    const answered = await json('task', 'cancel', 'active', ...Q);
    expect(answered.json).toEqual({
      cancelled: [{ id: 'active', isAnswered: way !== 'http' ? true : null }],
      failed: [],
    });
    await expect.poll(() => asked.length).toBe(2);
    expect(asked).toContainEqual({ taskId: 'active', queue: 'default', outcome: 'retry' });
  });

  it('tasks task cancel of a task that is not active has the exit code 1', async () => {
    const { command, json } = await withEveryState(way);
    for (const id of ['nonsense', 'pending']) {
      const { stdout, stderr, code } = await command('task', 'cancel', id);
      expect([stdout, stderr, code]).toEqual(['', `escapement: there is no active task '${id}'\n`, 1]);
    }
    expect(await json('task', 'cancel', 'nonsense', ...Q)).toEqual({
      json: {
        cancelled: [],
        failed: [{ id: 'nonsense', message: "there is no active task 'nonsense'" }],
      },
      code: 1,
    });
    expect((await command('task', 'cancel', 'nonsense', '-q', 'none')).code).toBe(1);
  });

  it('tasks task changes all tasks in a state', async () => {
    const { add, command, json } = await openTarget(way);
    for (const id of ['a', 'b', 'c']) await add(id, { processInMs: 60_000 });
    for (const id of ['d', 'e']) await add(id, { group: 'g' });
    const run = await command('task', 'runall', ...Q, '-s', 'scheduled');
    expect(run).toEqual({ stdout: 'default: 3 tasks pending\n', stderr: '', code: 0 });
    expect((await json('task', 'archiveall', ...Q, '--state', 'pending')).json).toEqual({
      ...{ queue: 'default', state: 'pending', archived: 3 },
    });
    expect((await command('task', 'archiveall', ...Q, '-s', 'aggregating', '-g', 'g')).stdout).toBe(
      'default: 2 tasks archived\n',
    );
    expect((await json('task', 'deleteall', ...Q, '-s', 'archived')).json).toMatchObject({ deleted: 5 });
    expect((await command('task', 'deleteall', ...Q, '-s', 'archived')).stdout).toBe(
      'default: 0 tasks deleted\n',
    );
    const none = await command('task', 'deleteall', '-q', 'none', '-s', 'archived');
    expect(none).toMatchObject({ stdout: '', code: 2 });
  });
});

describe.each<Way>(['broker', 'http'])('escapement tasks task enqueue, over %s', (way) => {
  it('tasks task enqueues with every option of asynq', async () => {
    const { command, json } = await openTarget(way);
    const { json: task } = await json(
      ...['task', 'enqueue', '--type_name', 'email:send', '--payload', '{"user":42}', '--queue', 'low'],
      ...['--id', 'one', '--retry', '3', '--timeout', '1m30s', '--deadline', '2026-11-22T13:00:00+01:00'],
      ...['--unique', '1h', '--process_at', '2026-11-21T13:00:00Z', '--retention', '24h'],
      ...['--header', 'trace=a=b', '--header', 'other='],
    );
    expect(task).toEqual({
      ...{ id: 'one', queue: 'low', type: 'email:send', state: 'scheduled' },
      ...{ payload: '{"user":42}', payloadEncoding: 'utf8' },
      ...{ maxRetry: 3, retried: 0, lastError: '' },
      ...{ nextProcessAt: '2026-11-21T13:00:00.000Z', deadline: '2026-11-22T12:00:00.000Z' },
      ...{ timeoutMs: 90_000, retentionMs: 86_400_000, isOrphaned: false },
      ...{ headers: { trace: 'a=b', other: '' }, key: '' },
    });
    const same = ['task', 'enqueue', '--type', 'email:send', '-l', '{"user":42}', '-q', 'low'];
    const locked = await command(...same, '--unique', '5s');
    expect(locked).toMatchObject({ stdout: '', code: 2 });
    const conflict = await command('task', 'enqueue', '-t', 'x', '--id', 'one', '-q', 'low');
    expect(conflict.stderr).toMatch(/^escapement: [^\n]*one[^\n]*\n$/);
    expect(conflict.code).toBe(2);
  });

  it('tasks task enqueues tasks with a key, and the next one of a queue', async () => {
    const { broker, command } = await openTarget(way);
    const words = ['task', 'enqueue', '-t', 'work', '--key', 'acme'];
    await command(...words, '--id', 'first');
    await command(...words, '--id', 'second', '--priority', 'next');
    const [next] = await broker.dequeue('default', 1, 1_000);
    expect(next?.message).toMatchObject({ id: 'second', key: 'acme' });
    expect((await command(...words, '--priority', 'high')).stderr).toMatch(/It must be 'normal' or 'next'/);
    expect((await command(...words, '--key', 'x'.repeat(257))).stderr).toMatch(/at most 256 bytes/);
  });

  it('tasks task enqueues pending, scheduled and grouped tasks, and payloads that begin like an option', async () => {
    const { command, inspector } = await openTarget(way);
    const enqueue: typeof command = (...words) => command('task', 'enqueue', '-t', 'work', ...words);
    expect((await enqueue('--id', 'a', '-l', '-p')).stdout).toBe('a: pending, in queue default\n');
    expect(Buffer.from((await inspector.getTaskInfo('default', 'a')).payload).toString()).toBe('-p');
    expect((await enqueue('--id', 'b', '--process-in', '1h')).stdout).toBe(
      'b: scheduled for 2026-11-21 13:00:00 UTC, in queue default\n',
    );
    expect((await enqueue('--id', 'c', '-g', 'g')).stdout).toBe('c: aggregating, in queue default\n');
    const both = await command(
      ...['task', 'enqueue', '-t', 'x', '--process_in', '1h', '--process_at', '2026-11-21T13:00:00Z'],
    );
    expect(both.stderr).toMatch(/cannot be used together/);
    const noDay = await enqueue('--process_at', '2026-02-30T12:00:00Z');
    expect([noDay.stderr, noDay.code]).toEqual([expect.stringMatching(/It must be a time in RFC 3339/), 2]);
    expect(await enqueue('--unique_key', 'a\\b')).toMatchObject({
      stderr: expect.stringMatching(/--unique_key must be used with --unique\. Received 'a\\b' /) as string,
      code: 2,
    });
    expect(both.code).toBe(2);
  });
});

it.each([
  [['task', 'ls', '-s', 'pending'], /required option '-q, --queue <queue>'/],
  [['task', 'ls', ...Q, '-s', 'nonsense'], /Allowed choices are active, pending/],
  [['task', 'ls', ...Q, '-s', 'pending', '--page', '0'], /whole number/],
  [['task', 'ls', ...Q, '-s', 'pending', '--size', '1001'], /from 1 to 1000/],
  [['task', 'ls', ...Q, '-s', 'aggregating'], /--group/],
  [['task', 'ls', ...Q, '-s', 'pending', '-g', 'g'], /--group is for aggregating/],
  [['task', 'run', ...Q], /no task is given; use --id/],
  [['task', 'cancel'], /missing required argument/],
  [['task', 'cancel', 'a', '--outcome', 'nonsense'], /retry, archive, delete/],
  [['task', 'runall', ...Q, '-s', 'pending'], /Allowed choices are scheduled, retry/],
  [['task', 'archiveall', ...Q, '-s', 'completed'], /Allowed choices are pending/],
  [['task', 'deleteall', ...Q, '-s', 'active'], /Allowed choices are pending/],
  [['task', 'enqueue'], /required option '-t, --type_name/],
  [['task', 'enqueue', '-t', 'work', '--timeout', '5'], /duration/],
  [['task', 'enqueue', '-t', 'work', '--unique', '0s'], /at least 1 ms/],
  [['task', 'enqueue', '-t', 'work', '--deadline', '2026-11-21'], /RFC 3339/],
  [['task', 'enqueue', '-t', 'work', '--deadline', '2026-11-21T24:00:00Z'], /RFC 3339/],
  [['task', 'enqueue', '-t', 'work', '--header', 'nonsense'], /name=value/],
])('the arguments %j of tasks task are wrong usage', async (words, message) => {
  const { command } = await openTarget('broker');
  const { stdout, stderr, code } = await command(...words);
  expect(stderr).toMatch(message);
  expect([stdout, code]).toEqual(['', 2]);
});

it('tasks task shows payloads as text if they are text, or as hex', async () => {
  const { client, command, json } = await openTarget('broker');
  await client.enqueue(new Task('work', Buffer.from([0, 255]), { taskId: 'binary' }));
  expect((await command('task', 'inspect', ...Q, '-i', 'binary')).stdout).toMatch(
    /\npayload +non-printable bytes\n/,
  );
  expect((await command('task', 'inspect', ...Q, '-i', 'binary', '--hex')).stdout).toMatch(
    /\npayload +00ff\n/,
  );
  expect((await command('task', 'ls', ...Q, '-s', 'pending')).stdout).toContain('non-printable bytes');
  expect((await json('task', 'inspect', ...Q, '-i', 'binary')).json).toMatchObject({
    ...{ payload: 'AP8=', payloadEncoding: 'base64' },
  });
});

it('tasks task cancels with another outcome, and reports that no server has answered', async () => {
  const { broker, command } = await withEveryState('broker');
  const asked: unknown[] = [];
  const cancel = (request: unknown): boolean => asked.push(request) < 0;
  await broker.subscribe({ cancel }, []);
  const { stdout, code } = await command('task', 'cancel', 'active', '--outcome', 'archive', ...Q);
  expect([stdout, code]).toEqual(['active: stop requested; no server has answered\n', 0]);
  expect(asked).toEqual([{ taskId: 'active', queue: 'default', outcome: 'archive' }]);
});

it('tasks task draws a progress bar on a terminal', async () => {
  const { add, broker, surroundings } = await openTarget('broker');
  await add('a');
  let goOn: () => void = () => undefined;
  broker.change = () => new Promise((resolve) => (goOn = () => { resolve(1); })); // oxfmt-ignore
  const err = new FakeStream(true);
  const deleted = tasksCommand(['task', 'deleteall', ...Q, '-s', 'pending'], { ...surroundings, err });
  await expect.poll(() => err.written).toContain('default');
  goOn();
  expect(await deleted).toMatchObject({ stdout: 'default: 1 task deleted\n', code: 0 });
});

it('a table that is wider than the terminal is shown with a line for each cell', async () => {
  const { surroundings } = await withEveryState('broker');
  const shown = async (columns: number): Promise<string> => {
    const out = new FakeStream(true, columns);
    await tasksCommand(['task', 'ls', ...Q, '-s', 'retry'], { ...surroundings, out });
    return out.written;
  };
  expect(await shown(120)).toMatch(/^┌─/);
  expect(await shown(80)).toMatch(/^id +retry\ntype +work\npayload +\{"id":"retry"\}\n[^]*retried +1\/25\n$/);
  const all = new FakeStream(true, 80);
  await tasksCommand(['stats'], { ...surroundings, out: all });
  expect(Math.max(...all.written.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80);
  expect(all.written).toMatch(/\nqueue +default\nsize +7\n/);
});

it('tasks task reports what is not available over HTTP', async () => {
  const { command } = await withEveryState('http');
  for (const words of [
    ['run', ...Q, '-i', 'completed'],
    ['archive', ...Q, '-i', 'completed'],
    ['cancel', 'active', '--outcome', 'delete'],
  ]) {
    const { stdout, stderr, code } = await command('task', ...words);
    expect(stderr).toMatch(/^escapement: .* is not available over the HTTP API\n$/);
    expect([stdout, code]).toEqual(['', 2]);
  }
});

it('tasks task enqueue reports in one line what the other process refuses, and when it is not there', async () => {
  const { broker } = await openTarget('broker');
  const uri = await serveTasks({ broker, readOnly: true });
  const refused = await tasksCommand(['task', 'enqueue', '-t', 'work', '-u', uri]);
  expect(refused.stderr).toBe(`escapement: ${uri}: POST is not allowed here (HTTP 405)\n`);
  const nowhere = await tasksCommand(['task', 'enqueue', '-t', 'work', '-u', 'http://127.0.0.1:1']);
  expect(nowhere.stderr).toMatch(/^escapement: cannot reach http:\/\/127\.0\.0\.1:1: [^\n]+\n$/);
  expect([refused.code, nowhere.code]).toEqual([2, 2]);
});
