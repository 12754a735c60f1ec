import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { leaveContender } from '../diskqueue/support/left-contender.ts';
import { folderOfTest } from '../folder.ts';
import { diskQueue, endOf, startBound } from './support/command.ts';
import { makeNsqQueue, makeQueue } from './support/queue-folder.ts';
import { refusal } from './tasks/support/tasks-command.ts';

/** A folder with two queues in order. */
async function folderWithQueues(): Promise<string> {
  const folder = folderOfTest();
  await makeQueue(folder, 'orders', ['one']);
  makeNsqQueue(folder, 'events');
  return folder;
}

const makeLink =
  (target?: string) =>
  (path: string): void =>
    symlinkSync(target ?? path, path);
const makePipe = (path: string): unknown => execFileSync('mkfifo', [path]);

async function makeSocket(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
}

const ODD_ENTRIES: [what: string, file: string, make: (path: string) => unknown, reason: string][] = [
  ['a folder', 'odd.0000000001.segment', mkdirSync, 'a folder, and should be a file'],
  ['a folder', 'odd.cursor', mkdirSync, 'a folder, and should be a file'],
  ['a folder', 'odd.diskqueue.000000.dat', mkdirSync, 'a folder, and should be a file'],
  ['a dangling link', 'odd.0000000001.segment', makeLink('nowhere'), 'no such file or folder'],
  ['a link to itself', 'odd.0000000001.segment', makeLink(), 'a symbolic link that leads to itself'],
  [
    ...(['a link to a device', 'odd.0000000001.segment', makeLink('/dev/zero')] as const),
    'a pipe or a device, and should be a file',
  ],
  ['a named pipe', 'odd.0000000001.segment', makePipe, 'a pipe or a device, and should be a file'],
  ['a named pipe', 'odd.cursor', makePipe, 'a pipe or a device, and should be a file'],
  ['a named pipe', 'odd.diskqueue.000000.dat', makePipe, 'a pipe or a device, and should be a file'],
  ['a named pipe', 'odd.diskqueue.meta.dat', makePipe, 'a pipe or a device, and should be a file'],
  ['a socket', 'odd.0000000001.segment', makeSocket, 'a socket or a device, and should be a file'],
];

describe.skipIf(process.platform === 'win32').each(ODD_ENTRIES)('%s named %s', (_, file, make, reason) => {
  it.each([
    ['ls', /orders.*no/],
    ['verify', /^orders \(checked\): clean/m],
    ['repair', /^orders \(checked\): nothing to do/m],
  ])('an odd entry is reported by %s, and the other queues are served', async (command, orders) => {
    const folder = await folderWithQueues();
    await make(`${folder}/${file}`);
    const { stdout, stderr, code } = await diskQueue(command, folder);
    expect(stderr).toBe(`escapement: ${folder}/${file}: ${reason}\n`);
    expect(stdout).toMatch(orders);
    expect(stdout).toMatch(/events/);
    expect(code).toBe(2);
    const { queues, failed } = JSON.parse((await diskQueue(command, folder, '--json')).stdout) as {
      queues: { name: string }[];
      failed: object[];
    };
    expect(queues.map(({ name }) => name)).toEqual(['events', 'orders']);
    expect(failed).toMatchObject([{ name: 'odd', message: `${folder}/${file}: ${reason}` }]);
  });

  it('an odd entry in a folder does not prevent dump from printing another queue', async () => {
    const folder = await folderWithQueues();
    await make(`${folder}/${file}`);
    const orders = await diskQueue('dump', folder, '--queue', 'orders');
    expect(orders).toEqual({ stdout: '1\tone\n', stderr: '', code: 0 });
    const odd = await diskQueue('dump', folder, '--queue', 'odd');
    expect(odd).toEqual(refusal(`${folder}/${file}: ${reason}`));
  });
});

it.each(['ls', 'verify', 'repair'])(
  'the folder of a process that was killed while it took the lock is not reported by %s',
  async (command) => {
    const folder = await folderWithQueues();
    for (const queue of ['orders', 'events']) leaveContender(folder, queue);
    const { stdout, stderr, code } = await diskQueue(command, folder);
    expect(stdout).toMatch(/events[^]*orders/);
    expect(stdout).not.toContain('.lock');
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  },
);

it.each(['ls', 'verify', 'repair'])(
  'a file that may not be read is reported by %s, and the other queues are served',
  async (command) => {
    const folder = await folderWithQueues();
    for (const file of ['odd.0000000001.segment', 'other.cursor']) {
      writeFileSync(`${folder}/${file}`, '');
      chmodSync(`${folder}/${file}`, 0);
    }
    const { stdout, stderr, code } = await endOf(startBound(['diskqueue', command], folder));
    const denied = (file: string): string => `escapement: ${folder}/${file}: permission denied\n`;
    expect(stderr).toBe(denied('odd.0000000001.segment') + denied('other.cursor'));
    expect(stdout).toMatch(/events[^]*orders/);
    expect(code).toBe(2);
  },
);

describe.runIf(process.platform === 'linux')('a file whose name is not UTF-8', () => {
  it.each(['ls', 'verify', 'repair'])(
    'a file whose name is not UTF-8 is reported by %s, and the other queues are served',
    async (command) => {
      const folder = await folderWithQueues();
      writeFileSync(Buffer.from(`${folder}/odd\xff.0000000001.segment`, 'latin1'), '');
      const { stdout, stderr, code } = await diskQueue(command, folder);
      expect(stderr).toMatch(
        /odd\ufffd\.0000000001\.segment: no such file or folder; its name is not UTF-8\n$/,
      );
      expect(stdout).toMatch(/events[^]*orders/);
      expect(code).toBe(2);
    },
  );
});

/** Clears the screen, turns the direction of writing, and begins another line. */
const HOSTILE = 'a\u001b[2J\u009b2J\r\nb\u202ec\u2066d\u200fe\u061cf\u2028g\u007f{bar}';
const SHOWN = 'a\\x1b[2J\\x9b2J\\r\\nb\\u202ec\\u2066d\\u200fe\\u061cf\\u2028g\\x7f{bar}';
const HARMFUL = /[^\P{Cc}\n\t]|[\u2028\u2029\p{Bidi_Control}]/u;

it.each(['ls', 'verify', 'dump', 'repair'])(
  'a queue name that would affect a terminal is shown by %s with escapes',
  async (command) => {
    const folder = `${folderOfTest()}/${HOSTILE}`;
    mkdirSync(folder);
    await makeQueue(folder, HOSTILE, [`${HOSTILE}\ud800`]);
    const shown = await diskQueue(command, folder);
    expect(shown.stdout).toContain(SHOWN);
    const words = command === 'ls' ? ['--odd' + HOSTILE] : ['--queue', `${HOSTILE}?`];
    const missing = await diskQueue(command, folder, ...words);
    expect(missing.stderr).toContain(command === 'ls' ? 'a\\x1b[2J' : SHOWN);
    mkdirSync(`${folder}/${HOSTILE}.0000000009.segment`);
    const failed = await diskQueue(command, folder);
    expect(failed.stderr).toContain(`${SHOWN}.0000000009.segment: a folder, and should be a file`);
    const json = await diskQueue(command, folder, '--json');
    for (const { stdout, stderr } of [shown, missing, failed, json])
      expect(stdout + stderr).not.toMatch(HARMFUL);
    if (command !== 'dump')
      expect(JSON.parse(json.stdout)).toMatchObject({ folder, failed: [{ name: HOSTILE }] });
  },
);
