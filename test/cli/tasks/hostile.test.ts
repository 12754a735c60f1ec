import { describe, expect, it } from 'vitest';
import { Task } from 'escapement/tasks';
import { START_MS } from '../../tasks/support/bench.ts';
import { announceServer, openTarget, serve, tasksCommand, WAYS } from './support/tasks-command.ts';

/** Clears the screen, three ways, rings, begins another line, and turns the direction of writing. */
const HOSTILE = 'a/b:run\u001b[2J\u009b2J\u0007\r\n\u2028?#%2F"\\\u202e\u2066\u200f\u061c';
const CONTROL = /[^\P{Cc}\n]|[\u2028\u2029\p{Bidi_Control}]/u;

describe.each(WAYS)('text of users, over %s', (way) => {
  it('has no effect on a terminal, and still identifies its task', async () => {
    const bench = await openTarget(way);
    const { broker, client, command, inspector, json } = bench;
    const payload = Buffer.from(`"${HOSTILE}"`);
    const headers = { [HOSTILE]: HOSTILE };
    const task = new Task(HOSTILE, payload, { taskId: HOSTILE, queue: HOSTILE, headers });
    await client.enqueue(task);
    await client.enqueue(task, { taskId: 'grouped', group: HOSTILE });
    await announceServer(bench, HOSTILE);
    const entry = { id: HOSTILE, spec: HOSTILE, taskType: HOSTILE, payload, options: [HOSTILE] };
    const times = { nextEnqueueAtMs: START_MS, prevEnqueueAtMs: START_MS };
    await broker.announceScheduler(HOSTILE, () => [{ ...entry, ...times }], 600_000);
    await broker.recordEnqueueEvent(HOSTILE, { taskId: HOSTILE, atMs: START_MS });
    const q = ['-q', HOSTILE];
    const reading = [
      ['stats'],
      ['queue', 'ls'],
      ['queue', 'inspect', HOSTILE],
      ['queue', 'history', HOSTILE],
      ['task', 'ls', ...q, '-s', 'pending'],
      ['task', 'ls', ...q, '-s', 'aggregating', '-g', HOSTILE],
      ['task', 'inspect', ...q, '-i', HOSTILE],
      ['server', 'ls'],
      ['cron', 'ls'],
      ['cron', 'history', HOSTILE],
      ['group', 'ls', ...q],
      ['dash', '--once'],
    ];
    for (const words of reading) {
      const { stdout, stderr, code } = await command(...words);
      expect([stderr, code], words.join(' ')).toEqual(['', 0]);
      expect(stdout, words.join(' ')).not.toMatch(CONTROL);
      if (words[0] === 'dash') continue;
      const again = await command(...words, '--json');
      expect(again.stdout, words.join(' ')).not.toMatch(CONTROL);
      expect(JSON.stringify(JSON.parse(again.stdout))).toContain(JSON.stringify(HOSTILE).slice(1, -1));
    }
    expect((await json('task', 'inspect', ...q, '-i', HOSTILE)).json).toMatchObject({ id: HOSTILE });
    for (const words of [
      ['queue', 'pause', HOSTILE],
      ['task', 'archive', ...q, '-i', HOSTILE],
      ['task', 'run', ...q, '-i', HOSTILE],
      ['task', 'delete', ...q, '-i', HOSTILE],
      ['task', 'runall', ...q, '-s', 'aggregating', '-g', HOSTILE],
    ]) {
      const { stdout, stderr, code } = await command(...words);
      expect([stderr, code], words.join(' ')).toEqual(['', 0]);
      expect(stdout).not.toMatch(CONTROL);
    }
    expect(await inspector.getQueueInfo(HOSTILE)).toMatchObject({ paused: true, pending: 1, size: 1 });
  });

  it('has no effect on a terminal in errors either', async () => {
    const { add, command } = await openTarget(way);
    await add('a');
    for (const words of [
      ['queue', 'inspect', HOSTILE],
      ['task', 'inspect', '-q', 'default', '-i', HOSTILE],
      ['task', 'delete', '-q', 'default', '-i', HOSTILE, '-i', HOSTILE],
      ['group', 'ls', '-q', HOSTILE],
    ]) {
      const { stderr, code } = await command(...words);
      expect(stderr).toContain('a/b:run\\x1b[2J\\x9b2J');
      expect(stderr).not.toMatch(CONTROL);
      expect(code).toBe(2);
    }
  });
});

describe('a hostile HTTP API', () => {
  const now = new Date(START_MS).toISOString();
  const server = {
    ...{ id: 's1', host: HOSTILE, pid: HOSTILE, concurrency: HOSTILE, status: HOSTILE, start_time: now },
    ...{ queue_priorities: { [HOSTILE]: HOSTILE }, strict_priority_enabled: false, active_workers: [] },
  };

  it('has no effect on a terminal through the status of a server', async () => {
    const uri = await serve((_, response) => response.end(JSON.stringify({ servers: [server] })));
    const { stdout, code } = await tasksCommand(['server', 'ls', '-u', uri]);
    expect(stdout).toContain(
      'a/b:run\\x1b[2J\\x9b2J\\x07\\r\\n\\u2028?#%2F"\\\\\\u202e\\u2066\\u200f\\u061c',
    );
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout.trimEnd().split('\n')).toHaveLength(5); // a table of one row
    expect(code).toBe(0);
  });

  it('has no effect on a terminal through the text of an error', async () => {
    const uri = await serve((_, response) => response.writeHead(400).end(HOSTILE.replace('\n', '')));
    const { stderr, code } = await tasksCommand(['server', 'ls', '-u', uri]);
    expect(stderr).toMatch(/^escapement: a\/b:run\\x1b\[2J.*\\u061c \(HTTP 400\)\n$/);
    expect(stderr).not.toMatch(CONTROL);
    expect(code).toBe(2);
  });

  it('has no effect on a terminal through the arguments', async () => {
    const { stderr } = await tasksCommand([HOSTILE]);
    expect(stderr).toContain('a/b:run\\x1b[2J');
    expect(stderr).not.toMatch(CONTROL);
  });
});
