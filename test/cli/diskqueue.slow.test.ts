import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';
import { folderOfTest } from '../folder.ts';
import { finished } from '../run-program.ts';
import { diskQueue, diskQueueJson, endOf, startCommand, type JsonResult } from './support/command.ts';
import { damage, hashOf, makeNsqQueue, makeQueue, messagesOf, numbered, it } from './support/queue-folder.ts';
import { refusal } from './tasks/support/tasks-command.ts';

const ESCAPE = '\u001b';

describe('escapement', () => {
  it('the command prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(await endOf(startCommand(['--version']))).toEqual({ stdout: `${version}\n`, stderr: '', code: 0 });
  });

  it('the command has help for itself and its commands, with their exit codes', async () => {
    const { stdout, code } = await endOf(startCommand(['--help']));
    expect(stdout).toContain('diskqueue');
    expect(code).toBe(0);
    for (const command of ['ls', 'verify', 'dump', 'repair']) {
      const help = await diskQueue(command, '--help');
      expect(help.stdout).toMatch(/Exit codes: 0 .*2\s+wrong\s+usage/s);
      expect(help.code).toBe(0);
    }
  });

  it.each([
    [[], /Usage: escapement/],
    [['nonsense'], /unknown command 'nonsense'/],
    [['diskqueue'], /Usage: escapement diskqueue/],
    [['diskqueue', 'ls'], /missing required argument 'dir'/],
    [['diskqueue', 'ls', '.', '--nonsense'], /unknown option '--nonsense'/],
    [['diskqueue', 'dump', '.', '--limit', 'x'], /must be a whole number/],
    [['diskqueue', 'dump', '.', '--format', 'xml'], /Allowed choices are text, hex, base64, json/],
    [['diskqueue', 'dump', '.', '--raw', '--format', 'hex'], /cannot be used with/],
  ])(
    'the arguments %j are wrong usage: the exit code is 2, and standard output is empty',
    async (words, message) => {
      const { stdout, stderr, code } = await endOf(startCommand(words));
      expect(stderr).toMatch(message);
      expect([stdout, code]).toEqual(['', 2]);
    },
  );

  it('the command reports what is wrong with a folder', async ({ folder }) => {
    writeFileSync(`${folder}/file`, '');
    mkdirSync(`${folder}/empty`);
    for (const command of ['ls', 'verify', 'dump', 'repair']) {
      const missing = await diskQueue(command, `${folder}/missing`);
      expect(missing).toEqual(refusal(`${folder}/missing: no such folder`));
      const file = await diskQueue(command, `${folder}/file`);
      expect(file).toEqual(refusal(`${folder}/file: not a folder`));
      const empty = await diskQueue(command, `${folder}/empty/`);
      expect(empty.stderr).toMatch(/empty: there are no queues in this folder\n$/);
      expect(empty.code).toBe(command === 'ls' ? 0 : 2);
    }
    expect((await diskQueue('ls', '//')).stderr).not.toContain('no such folder');
    await makeQueue(folder, 'orders', ['a']);
    const other = await diskQueue('verify', folder, '--queue', 'order');
    expect(other).toEqual(refusal(`${folder}: there is no queue 'order' in this folder. Queues: orders`));
  });
});

it('diskqueue ls lists the queues of both formats', async ({ folder }) => {
  await makeQueue(folder, 'orders', numbered(30), { acked: 20 });
  makeNsqQueue(folder, 'events');
  const before = hashOf(folder);
  const { result, code } = await diskQueueJson('ls', folder);
  expect(result).toEqual({
    folder,
    queues: [
      {
        ...{ name: 'events', format: 'nsq', isOpen: false, messages: 5, unacknowledged: 4 },
        files: ['events.diskqueue.000000.dat', 'events.diskqueue.000001.dat', 'events.diskqueue.000002.dat'],
        bytes: 14 + 17 + 8 + 10,
      },
      {
        ...{ name: 'orders', format: 'checked', isOpen: false, unacknowledged: 10 },
        files: readdirSync(folder).filter((file) => file.endsWith('.segment')),
        messages: expect.any(Number) as number,
        bytes: expect.any(Number) as number,
      },
    ],
    failed: [],
  });
  const { stdout, stderr } = await diskQueue('ls', folder);
  expect(stdout).toMatch(/│ events │ nsq +│ +3 │ +5 │ +4 │ +49 bytes │ no +│/);
  expect([stderr, code, stdout.includes(ESCAPE)]).toEqual(['', 0, false]);
  expect(hashOf(folder)).toBe(before);
});

it('diskqueue ls shows whether a queue is open, in another process too', async ({ folder }) => {
  const queue = await DiskQueue.open({ name: 'orders', dataPath: folder });
  await queue.put(Buffer.from('a'));
  const other = await endOf(startCommand(['diskqueue', 'ls', folder, '--json']));
  const open = JSON.parse(other.stdout) as JsonResult;
  expect(open.queues).toMatchObject([{ name: 'orders', messages: 1, isOpen: true }]);
  await queue.close();
  const closed = await diskQueueJson('ls', folder);
  expect(closed.result.queues).toMatchObject([{ isOpen: false }]);
});

it('diskqueue ls lists a queue that was read to its end', async ({ folder }) => {
  await makeQueue(folder, 'orders', ['a'], { acked: 1 });
  await makeQueue(folder, 'orders', []);
  for (const name of ['somebody.cursor', 'somebody.diskqueue.0000001.dat']) {
    writeFileSync(`${folder}/${name}`, 'of another program');
  }
  const { result } = await diskQueueJson('ls', folder);
  expect(result.queues).toMatchObject([{ name: 'orders', files: [], messages: 0, unacknowledged: 0 }]);
});

it('a queue that is in use can be listed, verified and dumped meanwhile', async ({ folder }) => {
  const options = { maxBytesPerFile: 256, durability: 'os' } as const;
  const queue = await DiskQueue.open({ name: 'orders', dataPath: folder, ...options });
  await queue.put(Buffer.from('first'));
  const over = new AbortController();
  const work = (async (): Promise<void> => {
    while (!over.signal.aborted) {
      await Promise.all(numbered(50).map((message) => queue.put(Buffer.from(message))));
      for (let i = 0; i < 50; i++) (await queue.receive()).ack();
      await queue.flush();
    }
  })();
  try {
    for (const command of ['ls', 'verify', 'dump', 'ls', 'verify', 'dump']) {
      const { stderr, code } = await diskQueue(command, folder);
      expect([command, stderr]).toEqual([command, '']);
      expect([0, 1]).toContain(code); // it changes under the reader
    }
  } finally {
    over.abort();
    await work;
    await queue.close();
  }
});

const SECOND = 'orders.0000000002.segment';

/** Of thirty messages in three files; one is damaged in the second file, and the third has lost one copy of its header. */
async function damagedFolder(): Promise<string> {
  const folder = folderOfTest();
  await makeQueue(folder, 'orders', numbered(30), { acked: 2 });
  damage(folder, SECOND, 128 + 24 + 1);
  damage(folder, 'orders.0000000003.segment', 3);
  return folder;
}

describe('escapement diskqueue repair', () => {
  it('diskqueue repair prints the steps with --dry-run, and changes nothing', async () => {
    const folder = await damagedFolder();
    const before = hashOf(folder);
    const { result, code } = await diskQueueJson('repair', folder, '--dry-run');
    expect(code).toBe(1);
    expect(result).toMatchObject({
      ...{ folder, isDryRun: true },
      queues: [
        {
          ...{ name: 'orders', format: 'checked' },
          steps: [
            { action: 'rewrite', file: join(folder, SECOND), keptAs: join(folder, `${SECOND}.damaged`) },
            { action: 'mend', file: join(folder, 'orders.0000000003.segment') },
            { action: 'write cursor', file: join(folder, 'orders.cursor') },
          ],
          lost: [{ file: join(folder, SECOND), offset: 128, messages: 1 }],
        },
      ],
    });
    expect(Object.keys(result.queues[0] ?? {})).toEqual(['name', 'format', 'steps', 'lost']);
    const { stdout } = await diskQueue('repair', folder, '--dry-run');
    expect(stdout).toContain('orders (checked): this would be done\n');
    expect(hashOf(folder)).toBe(before);
  });

  it('diskqueue repair keeps every intact message in order and the damaged files as copies; a second repair does nothing', async () => {
    const folder = await damagedFolder();
    const was = readFileSync(join(folder, SECOND));
    const { stdout, stderr, code } = await diskQueue('repair', folder);
    expect([stderr, code]).toEqual(['', 1]);
    expect(stdout).toMatch(/^orders \(checked\): repaired\n/);
    const lost = Number(/lost .* message (\d+): the checksum of a payload is wrong/.exec(stdout)?.[1]);
    expect(readFileSync(join(folder, `${SECOND}.damaged`))).toEqual(was);

    expect((await diskQueue('verify', folder)).code).toBe(0);
    const before = hashOf(folder);
    const again = await diskQueue('repair', folder);
    expect([again.stdout, again.code]).toEqual(['orders (checked): nothing to do\n', 0]);
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['orders.cursor', SECOND]));
    expect((await diskQueueJson('repair', folder, '--dry-run')).result.queues[0]?.steps).toEqual([]);
    expect(before).not.toBe('');

    const kept = numbered(30).filter((_, i) => i >= 2 && i + 1 !== lost);
    expect(await messagesOf(folder, 'orders')).toEqual(kept);
  });

  it('diskqueue repair replaces a damaged cursor: no message is lost, and some are delivered again', async () => {
    const folder = folderOfTest();
    await makeQueue(folder, 'orders', numbered(10), { acked: 2, maxBytesPerFile: 10_000 });
    for (const slot of [64, 4_096]) damage(folder, 'orders.cursor', slot);
    const { stdout, code } = await diskQueue('repair', folder);
    expect(stdout).toContain('write cursor');
    expect(code).toBe(0);
    expect(await messagesOf(folder, 'orders')).toEqual(numbered(10));
  });

  it('diskqueue repair changes no queue if one of them is open', async () => {
    const folder = await damagedFolder();
    const queue = await DiskQueue.open({ name: 'zebras', dataPath: folder });
    await queue.put(Buffer.from('a'));
    const before = hashOf(folder);
    for (const words of [[], ['--dry-run'], ['--queue', 'zebras']]) {
      const open = `queue 'zebras' in ${folder} is open; end the process that has it open first`;
      expect(await diskQueue('repair', folder, ...words)).toEqual(refusal(open));
    }
    expect(hashOf(folder)).toBe(before);
    await queue.close();
    expect((await diskQueue('repair', folder, '--queue', 'orders')).code).toBe(1);
  });
});

const BINARY = Buffer.from([0, 1, 0xff, 0x41, 0x0a]);

describe('escapement diskqueue dump', () => {
  it('diskqueue dump prints the unacknowledged messages, one a line, and changes nothing', async () => {
    const folder = folderOfTest();
    await makeQueue(folder, 'orders', numbered(30), { acked: 3 });
    const before = hashOf(folder);
    const { stdout, stderr, code } = await diskQueue('dump', folder, '--queue', 'orders');
    const lines = numbered(30).map((message, i) => `${i + 1}\t${message}\n`);
    expect([stdout, stderr, code]).toEqual([lines.slice(3).join(''), '', 0]);
    const all = await diskQueue('dump', folder, '--all');
    expect(all.stdout).toBe(lines.join(''));
    const some = await diskQueue('dump', folder, '--from', '10', '--limit', '2');
    expect(some.stdout).toBe(lines.slice(9, 11).join(''));
    expect((await diskQueue('dump', folder, '--limit', '0')).stdout).toBe('');
    expect((await diskQueue('dump', folder, '--from', '31')).stdout).toBe('');
    expect(hashOf(folder)).toBe(before);
  });

  it('diskqueue dump prints messages as text, hex, base64, JSON or raw bytes', async ({ folder }) => {
    await makeQueue(folder, 'orders', ['grün\t\u001b[1m\\', BINARY, '']);
    const dump = async (...words: string[]): Promise<string> =>
      (await diskQueue('dump', folder, ...words)).stdout;
    expect(await dump()).toBe('1\tgrün\\t\\x1b[1m\\\\\n2\t\\x00\\x01\\xffA\\n\n3\t\n');
    expect(await dump('--format', 'hex', '--from', '2')).toBe('2\t0001ff410a\n3\t\n');
    expect(await dump('--format', 'base64', '--from', '2')).toBe('2\tAAH/QQo=\n3\t\n');
    const json = '{"sequence":2,"isAcknowledged":false,"data":"AAH/QQo="}\n';
    expect(await dump('--format', 'json', '--from', '2', '--limit', '1')).toBe(json);
    expect(await dump('--json', '--from', '2', '--limit', '1')).toBe(json);
    const raw = await finished(startCommand(['diskqueue', 'dump', folder, '--raw', '--from', '2']));
    expect(raw.stdout).toEqual(BINARY);
  });

  it('diskqueue dump needs --queue if there are several queues', async ({ folder }) => {
    await makeQueue(folder, 'orders', ['a']);
    makeNsqQueue(folder, 'events');
    const several = `${folder}: there are several queues; use --queue. Queues: events, orders`;
    expect(await diskQueue('dump', folder)).toEqual(refusal(several));
    const { stdout } = await diskQueue('dump', folder, '--queue', 'events');
    expect(stdout).toBe('2\ttwo\n3\tthree\n4\tfour\n5\tfive\n');
    makeNsqQueue(folder, 'orders');
    expect((await diskQueue('dump', folder, '--queue', 'orders')).stderr).toContain('one of each format');
  });

  it('diskqueue dump leaves damaged parts out, reports them, and the exit code is 1', async ({ folder }) => {
    await makeQueue(folder, 'orders', numbered(3));
    damage(folder, 'orders.0000000001.segment', 128 + 24);
    const { stdout, stderr, code } = await diskQueue('dump', folder);
    expect(stdout).toBe('2\tmessage 2\n3\tmessage 3\n');
    expect(stderr).toBe(`escapement: 1 damaged part left out; 'verify' lists them\n`);
    expect(code).toBe(1);
  });

  it('diskqueue dump ends without an error when its reader closes the pipe', async ({ folder }) => {
    const messages = Array.from({ length: 2_000 }, () => 'x'.repeat(1_000));
    await makeQueue(folder, 'orders', messages, { maxBytesPerFile: 10_000_000 });
    const child = startCommand(['diskqueue', 'dump', folder]);
    const result = finished(child);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.stdout?.destroy();
    const { stderr, code } = await result;
    expect([stderr, code]).toEqual(['', 0]);
  });

  it('diskqueue dump has the exit code 130 after Ctrl-C', async ({ folder }) => {
    const messages = Array.from({ length: 3_000 }, () => 'x'.repeat(2_000));
    await makeQueue(folder, 'orders', messages, { maxBytesPerFile: 10_000_000 });
    const child = startCommand(['diskqueue', 'dump', folder, '--format', 'hex']);
    await once(child.stdout as NodeJS.ReadableStream, 'readable'); // and it is not read on: the command waits
    child.kill('SIGINT');
    const { stderr, code } = await finished(child);
    expect([stderr, code]).toEqual(['', 130]);
  });
});
