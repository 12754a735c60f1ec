import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { CommandError, describeError } from '../../src/cli/command-error.ts';
import { addDashboard } from '../../src/cli/dashboard/dashboard.ts';
import { addDiskQueue } from '../../src/cli/diskqueue/diskqueue.ts';
import { run } from '../../src/cli/main.ts';
import { addTasks } from '../../src/cli/tasks/tasks.ts';
import { Output } from '../../src/cli/terminal/output.ts';
import { ProgressBar } from '../../src/cli/terminal/progress-bar.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import {
  counted,
  formatBytes,
  harmless,
  printable,
  printableBytes,
  table,
  toJson,
} from '../../src/cli/terminal/text.ts';
import { EscapementError } from '../../src/core/errors.ts';
import { folderOfTest } from '../folder.ts';
import { COMMAND } from './support/command.ts';
import { damage, makeQueue } from './support/queue-folder.ts';
import { FakeStream } from './tasks/support/tasks-command.ts';

describe('Output', () => {
  it('a terminal output has colours on a terminal only', () => {
    const text = new Output(new FakeStream(true, 80)).paint('red', 'problem');
    expect(text).toBe('\u001b[31mproblem\u001b[39m');
    expect(new Output(new FakeStream(false, 80)).paint('red', 'problem')).toBe('problem');
  });

  it('a terminal output makes text harmless, and writes bytes unchanged', async () => {
    for (const isTTY of [true, false]) {
      const stream = new FakeStream(isTTY, 80);
      const out = new Output(stream);
      const red = out.paint('red', 'red');
      await out.print(`${red}\ta\u001b[2J\u009b\r\u202e\u2028\nb`);
      await out.add(Buffer.from('\u001b[H'));
      await out.flush();
      expect(stream.written).toBe(`${red}\ta\\x1b[2J\\x9b\\x0d\\u202e\\u2028\nb\n\u001b[H`);
    }
  });

  it.each([
    [false, 'EPIPE'],
    [true, 'EIO'],
  ])('an output (of a terminal: %j) collects data, and writes nothing more after %s', async (isTTY, code) => {
    const stream = new FakeStream(isTTY, 80);
    const out = new Output(stream);
    await out.add('a');
    expect(stream.written).toBe('');
    await out.print('b');
    expect(stream.written).toBe('ab\n');
    stream.failure = Object.assign(new Error('gone'), { code });
    await out.print('c');
    expect(out.isGone).toBe(true);
    await out.print('d');
    expect(stream.written).toBe('ab\n');
  });

  it.each(['ENOSPC', 'EIO'])('an output to a file rejects with %s', async (code) => {
    const stream = new FakeStream(false, 80);
    stream.failure = Object.assign(new Error('full'), { code });
    await expect(new Output(stream).print('a')).rejects.toThrow('full');
  });
});

/** What a progress bar writes in the first millisecond, and what it has written after a second. */
function drawn(isTTY: boolean, label = 'orders'): [atOnce: string, later: string] {
  const stream = new FakeStream(isTTY, 80);
  let nowMs = 0;
  const bar = new ProgressBar(new Output(stream), label, () => nowMs);
  bar.update(1, 100);
  const atOnce = stream.written;
  nowMs = 1_000;
  bar.update(50, 100);
  bar.stop();
  return [atOnce, stream.written];
}

it('a progress bar is drawn on a terminal, and only if the work takes a while', () =>
  expect(drawn(true)).toEqual(['', expect.stringContaining('orders')]));

it('a progress bar shows its label, which has no other effect on the terminal', () =>
  expect(drawn(true, '{total}\u001b[2J\u202e')[1]).toContain('{total}\\x1b[2J\\u202e'));

it('a progress bar is never drawn elsewhere', () => expect(drawn(false)).toEqual(['', '']));

it('text of the command has units', () => {
  const sizes = [0, 1, 1023, 1024, 1536, 20 * 1024, 3 * 1024 ** 3].map(formatBytes);
  expect(sizes).toEqual(['0 bytes', '1 byte', '1,023 bytes', '1.0 KiB', '1.5 KiB', '20 KiB', '3.0 GiB']);
  expect([counted(1, 'message'), counted(1_000, 'message')]).toEqual(['1 message', '1,000 messages']);
});

it('text of the command is one line that has no effect on a terminal', () => {
  expect(printable('a\u001b[2J\n\u2028\\')).toBe('a\\x1b[2J\\n\\u2028\\\\');
  const turning = '\u061c\u200e\u200f\u202a\u202e\u2066\u2069';
  const escaped = '\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069';
  expect(printable(turning)).toBe(escaped);
  expect(printableBytes(Buffer.from(turning))).toBe(escaped);
  expect(printable('\ud83d\ude00 \ud83d \ude00')).toBe('😀 \\ud83d \\ude00');
  const json = toJson({ [turning]: '\u007f\u009b\u2029\ud800' });
  expect(json).toBe(`{\n  "${escaped}": "\\u007f\\u009b\\u2029\\ud800"\n}`);
  expect(harmless(harmless('C:\\a\u001b'))).toBe('C:\\a\\x1b');
  expect(table([['a', (cell) => cell]], ['b\u001b\nc'], 80)).toContain('b\\x1b\\nc');
  expect(printableBytes(Buffer.from('é€'))).toBe('é€');
  expect(printableBytes(Buffer.from([0x61, 0xe9, 0x0a]))).toBe('a\\xe9\\n');
});

it('one very long text does not make a table too large to be drawn', () => {
  const items = ['x'.repeat(1_000_000), ...Array.from({ length: 1_000 }, () => 'y')];
  const text = table([['id', (item) => item]], items, Infinity);
  expect(text.length).toBeLessThan(1_100_000);
  expect(text).toMatch(/^id {2}x+\n\nid {2}y\n/);
});

it('describeError returns one line for an error of the environment', () => {
  const denied = Object.assign(new Error('EACCES: …'), { code: 'EACCES', path: '/q', syscall: 'open' });
  expect(describeError(denied)).toBe('/q: permission denied');
  const port = { code: 'EACCES', syscall: 'listen', address: '::1', port: 80 };
  const notAllowed = Object.assign(new Error('listen EACCES: permission denied ::1:80'), port);
  expect(describeError(notAllowed)).toBe('listen EACCES: permission denied ::1:80');
  const odd = Object.assign(new Error('EODD: odd'), { code: 'EODD', syscall: 'open' });
  expect(describeError(odd)).toBe('EODD: odd');
  expect(describeError(new CommandError('no such folder'))).toBe('no such folder');
  expect(describeError(new CommandError('C:\\a\nb\u001b[2J\u202e'))).toBe('C:\\a\\nb\\x1b[2J\\u202e');
  expect(describeError(new EscapementError('ERR_QUEUE_LOCKED', 'it is open'))).toBe(
    'it is open; end the process that has it open first',
  );
});

it('describeError keeps the stack of a fault of the program', () => {
  expect(describeError(new TypeError('a bug'))).toMatch(/TypeError: a bug\n +at /);
});

/** Runs the built command on a terminal that the host's `script` makes. */
const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

describe.skipIf(!hasScript)('on a terminal', () => {
  it('the command has colours on a terminal, unless NO_COLOR is set', async () => {
    const folder = folderOfTest();
    await makeQueue(folder, 'orders', ['a', 'b']);
    damage(folder, 'orders.0000000001.segment', 128 + 24);
    const run = (env: Record<string, string>): string => {
      // A slow machine shows the progress, on stderr.
      const line = `${process.execPath} ${COMMAND} diskqueue verify ${folder} 2>/dev/null`;
      const inherited = { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, CI: undefined };
      const options = { encoding: 'utf8', env: { ...inherited, TERM: 'xterm-256color', ...env } } as const;
      return spawnSync('script', ['-qec', line, '/dev/null'], options).stdout;
    };
    expect(run({})).toContain('\u001b[31m1 problem\u001b[39m');
    const plain = run({ NO_COLOR: '1' });
    expect(plain).toContain('1 problem');
    expect(plain).not.toContain('\u001b');
  });
});

describe('--help', () => {
  const PARTS = [addDashboard, addDiskQueue, addTasks];

  function terminalOn(stream: FakeStream): Terminal {
    const out = new Output(stream);
    return { out, err: out, signal: new AbortController().signal, exitCode: 0 };
  }

  async function helpOf(...words: string[]): Promise<string> {
    const stream = new FakeStream(false);
    expect(await run([...words, '--help'], terminalOn(stream), PARTS, '0.0.0')).toBe(0);
    return stream.written;
  }

  /** The words of every command, and of every group of commands. */
  function commandsIn(parent: Command, words: readonly string[] = []): string[][] {
    return parent.commands.flatMap((command) => {
      const path = [...words, command.name()];
      return [path, ...commandsIn(command, path)];
    });
  }

  const program = new Command();
  for (const add of PARTS) add(program, terminalOn(new FakeStream(false)));

  it.each([[], ...commandsIn(program)].map((words) => ({ words, command: words.join(' ') })))(
    'the help of escapement $command fits 80 columns',
    async ({ words }) => {
      const lines = (await helpOf(...words)).split('\n');
      expect(lines.filter(({ length }) => length > 80)).toEqual([]);
    },
  );

  it.each([[['--help']], [['bogus']]])(
    'the command escapement %j ends with 2 when its output cannot be written',
    async (words) => {
      const stream = new FakeStream(false);
      stream.failure = Object.assign(new Error('full'), { code: 'ENOSPC' });
      expect(await run(words, terminalOn(stream), PARTS, '0.0.0')).toBe(2);
    },
  );

  it.each([
    [['help'], 0, 'Usage: escapement [options] [command]'],
    [['help', 'tasks', 'queue', 'ls'], 0, 'Usage: escapement tasks queue list|ls [options]'],
    [['help', 'bogus'], 2, 'Usage: escapement [options] [command]'],
    [['help', 'tasks', 'bogus'], 2, 'Usage: escapement tasks [options] [command]'],
    [['help', 'dashboard', 'bogus'], 2, "error: too many arguments for 'dashboard'"],
  ] as const)('the command escapement %j ends with %d', async (words, code, shown) => {
    const stream = new FakeStream(false);
    expect(await run(words, terminalOn(stream), PARTS, '0.0.0')).toBe(code);
    expect(stream.written).toContain(shown);
  });

  it('the help of a command on tasks explains the connection options', async () => {
    const help = await helpOf('tasks', 'queue', 'ls');
    expect(help).toMatch(/^Connection \(see: escapement tasks --help\):\n {2}-u, --uri <uri> /m);
    for (const option of ['--db', '--password', '--cluster_addrs', '--tls', '--token', '--json']) {
      expect(help).toContain(option);
    }
    expect(help).not.toContain('--cluster-addrs');
  });

  it('help of several words is that of the command, and the help of a group names that of the connection', async () => {
    const stream = new FakeStream(false);
    expect(await run(['help', 'tasks', 'queue', 'remove'], terminalOn(stream), PARTS, '0.0.0')).toBe(0);
    expect(stream.written).toBe(await helpOf('tasks', 'queue', 'remove'));
    expect(await helpOf('tasks', 'queue')).toContain('Options of the connection: escapement tasks --help');
  });

  it('the help of queue explains --force where the command remove is listed', async () => {
    expect(await helpOf('tasks', 'queue')).toContain('--force');
  });
});
