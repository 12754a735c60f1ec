import { spawn, spawnSync } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { RedisProcess } from '../../redis/redis-process.ts';
import { COMMAND } from '../support/command.ts';
import {
  ESCAPE,
  FakeKeyboard,
  FakeStream,
  openTarget,
  refusal,
  serveTasks,
  tasksCommand,
  withEveryState,
  type Result,
  type TargetBench,
  WAYS,
} from './support/tasks-command.ts';

const ENTER = `${ESCAPE}[?1049h`;
const LEAVE = `${ESCAPE}[?1049l`;

interface Watched {
  /** What is on the screen now, without colours. */
  readonly screen: () => string;
  readonly press: (keys: string) => void;
  readonly keyboard: FakeKeyboard;
  readonly out: FakeStream;
  readonly abort: AbortController;
  readonly result: Promise<Result>;
}

function watch({ surroundings }: Pick<TargetBench, 'surroundings'>, ...words: string[]): Watched {
  const out = new FakeStream(true);
  const keyboard = new FakeKeyboard(true);
  const abort = new AbortController();
  const own = { out, keyboard, signal: abort.signal };
  const result = tasksCommand(['dash', ...words], { ...surroundings, ...own });
  return {
    screen: () => screenOf(out.written),
    press: (keys) => void keyboard.write(keys),
    ...{ keyboard, out, abort, result },
  };
}

/** Since it was last drawn from its top. */
function screenOf(written: string): string {
  const last = written.slice(written.lastIndexOf(`${ESCAPE}[H`));
  // eslint-disable-next-line no-control-regex -- that is what it is about
  return last.replace(/\u001b\[[?0-9;]*[A-Za-z]/g, '');
}

function expectRestored({ out, keyboard }: Watched): void {
  expect(out.written.startsWith(ENTER)).toBe(true);
  expect(out.written.endsWith(LEAVE)).toBe(true);
  expect(keyboard.isRaw).toBe(false);
}

describe.each(WAYS)('escapement tasks dash, over %s', (way) => {
  it('tasks dash shows queues, the tasks of a queue, and a task', async () => {
    const bench = await withEveryState(way);
    await bench.add('x', { queue: 'another' });
    const dash = watch(bench);
    await expect.poll(dash.screen).toMatch(/> another +run +1 .*\r\n {2}default +run +7 /);
    expect(dash.keyboard.isRaw).toBe(true);
    dash.press('j\r');
    await expect
      .poll(dash.screen)
      .toMatch(/default {2}page 1\r\n\[active 1\] {2}pending 1 .*\r\n.*\r\n> active +work/);
    dash.press('lll');
    await expect.poll(dash.screen).toMatch(/\[retry 1\].*\r\n.*next retry.*\r\n> retry +work .* in 5s +boom/);
    dash.press('\r');
    await expect
      .poll(dash.screen)
      .toMatch(/ {2}last error +boom\r\n(.*\r\n)* {2}payload +\{"id":"retry"\}\r\n/);
    dash.press(`q${ESCAPE}[D${ESCAPE}[D${ESCAPE}[D${ESCAPE}[D`);
    await expect.poll(dash.screen).toMatch(/\[aggregating 1\]\r\n.*\r\n> g +1\r\n/);
    dash.press('\r');
    await expect.poll(dash.screen).toMatch(/default \/ g {2}page 1\r\n.*\r\n.*\r\n> aggregating +work/);
    dash.press('n');
    await expect.poll(dash.screen).toMatch(/page 2\r\n.*\r\n.*\r\n {2}there are none/);
    dash.press('?');
    await expect.poll(dash.screen).toContain('any key: back');
    dash.press('xqqq');
    expect(await dash.result).toMatchObject({ stderr: '', code: 0 });
    expectRestored(dash);
  });

  it('tasks dash reads periodically', async () => {
    const bench = await openTarget(way);
    const dash = watch(bench, '--refresh', '1s');
    await expect.poll(dash.screen).toContain('there are none');
    await bench.add('a');
    await expect.poll(dash.screen).toMatch(/> default +run +1 /);
    dash.press('\u0003');
    expect(await dash.result).toMatchObject({ code: 0 });
    expectRestored(dash);
  });
});

describe('escapement tasks dash', () => {
  it('tasks dash reads once, and no more for now, if the time between two reads is longer than the host can count', async () => {
    const bench = await openTarget('broker');
    const read = vi.spyOn(bench.broker, 'queues');
    const dash = watch(bench, '--refresh', '600h');
    await expect.poll(dash.screen).toContain('there are none');
    await setTimeout(100);
    expect(read).toHaveBeenCalledTimes(1);
    dash.press('q');
    expect(await dash.result).toMatchObject({ code: 0 });
  });

  it('tasks dash shows an error, and goes on', async () => {
    const bench = await openTarget('broker');
    await bench.add('a');
    const dash = watch(bench);
    await expect.poll(dash.screen).toMatch(/> default/);
    await bench.inspector.deleteQueue('default', { force: true });
    dash.press('\r');
    await expect.poll(dash.screen).toMatch(/no queue 'default'/);
    dash.press('qq');
    expect(await dash.result).toMatchObject({ stderr: '', code: 0 });
  });

  it('tasks dash reads one at a time, however fast keys come', async () => {
    const bench = await withEveryState('broker');
    const { broker } = bench;
    const tasks = broker.tasks.bind(broker);
    const asked: string[] = [];
    let answer: () => void = () => undefined;
    broker.tasks = async (queue, state, ...rest) => {
      asked.push(state);
      await new Promise<void>((resolve) => (answer = resolve));
      return tasks(queue, state, ...rest);
    };
    const dash = watch(bench);
    await expect.poll(dash.screen).toMatch(/> default/);
    dash.press('\rllll');
    await expect.poll(dash.screen).toMatch(/\[archived 1\].*\r\n.*\r\n {2}…/);
    expect(asked).toEqual(['active']);
    answer();
    await expect.poll(() => asked).toEqual(['active', 'archived']);
    expect(dash.screen()).not.toContain('> active');
    answer();
    await expect.poll(dash.screen).toMatch(/> archived +work/);
    dash.press('qq');
    expect(await dash.result).toMatchObject({ code: 0 });
  });

  it('tasks dash goes on when Redis is back', async () => {
    const server = await RedisProcess.start();
    onTestFinished(() => server.stop());
    const environment = { ESCAPEMENT_URI: server.url };
    const dash = watch({ surroundings: { environment } }, '--refresh', '1s');
    await expect.poll(dash.screen).toContain('there are none');
    await server.kill();
    await expect.poll(dash.screen).toContain('Redis is unavailable');
    await server.start();
    await expect.poll(dash.screen).not.toContain('Redis is unavailable');
    dash.press('q');
    expect(await dash.result).toMatchObject({ stderr: '', code: 0 });
  });

  it('tasks dash restores the terminal when it is interrupted', async () => {
    const dash = watch(await openTarget('broker'));
    await expect.poll(dash.screen).toContain('there are none');
    dash.abort.abort(new Error('interrupted'));
    expect(await dash.result).toMatchObject({ stderr: '', code: 130 });
    await expect.poll(() => dash.out.written.endsWith(LEAVE)).toBe(true);
    expectRestored(dash);
  });

  it('tasks dash quits when the keyboard is closed', async () => {
    const dash = watch(await openTarget('broker'));
    await expect.poll(dash.screen).toContain('there are none');
    dash.keyboard.end();
    expect(await dash.result).toMatchObject({ code: 0 });
    expectRestored(dash);
  });

  it('tasks dash --once prints the queues once', async () => {
    const { add, command, surroundings } = await openTarget('broker');
    await add('a');
    const once = await command('dash', '--once');
    expect(once.stdout).toMatch(
      /^escapement tasks {2}there .*\n\n {2}queue +state .*\n {2}default +run +1 .*\n$/,
    );
    const narrow = new FakeStream(true, 40);
    await tasksCommand(['dash', '--once'], { ...surroundings, out: narrow });
    expect(narrow.written).toMatch(/^escapement tasks {2}there .*\n\nqueue +default\nstate +run\nsize +1\n/);
    await add('b', { queue: '漢'.repeat(12) }); // 77 characters a line, and 89 columns
    const wide = new FakeStream(true, 80);
    await tasksCommand(['dash', '--once'], { ...surroundings, out: wide });
    expect(wide.written).toMatch(/\nqueue +漢{12}\nstate +run\n/);
    expect((await command('dash', '--refresh', '500ms')).stderr).toMatch(/at least 1s/);
  });
});

it.each([
  [['--json'], 'dash has no --json; use stats --json'],
  [[], 'dash needs a terminal; --once prints the queues once'],
])('tasks dash %j is wrong usage, which is reported before a connection is made', async (words, message) => {
  expect(await tasksCommand(['dash', ...words, '-u', 'redis://127.0.0.1:1'])).toEqual(refusal(message));
});

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

/** The built command, on a terminal that the host's `script` makes. */
describe.skipIf(!hasScript)('on a terminal, escapement tasks dash', () => {
  it.each([
    ['q', 0],
    ['\u0003', 0],
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ])('tasks dash restores the terminal after %j, and ends with the exit code %d', async (end, code) => {
    const { add, broker } = await openTarget('broker');
    await add('a');
    const uri = await serveTasks({ broker });
    const line = `echo "pid $$"; exec ${process.execPath} ${COMMAND} tasks dash -u ${uri}`;
    const plain = { NO_COLOR: undefined, FORCE_COLOR: undefined, CI: undefined };
    const env = { ...process.env, ...plain, TERM: 'xterm-256color' };
    const child = spawn('script', ['-qec', line, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let written = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (written += chunk));
    const closed = new Promise((resolve) => child.once('close', resolve));
    await expect.poll(() => written).toContain('> default');
    expect(written).toContain(`${ESCAPE}[7m> default`);
    const pid = Number(/pid (\d+)/.exec(written)?.[1]);
    if (end.startsWith('SIG')) process.kill(pid, end);
    else child.stdin.write(end);
    expect(await closed).toBe(code);
    expect(written.indexOf(ENTER)).toBeGreaterThan(0);
    expect(written).toContain(`${ESCAPE}[?25h${LEAVE}`);
    expect(written.slice(written.indexOf(LEAVE) + LEAVE.length).trim()).toBe('');
  });
});
