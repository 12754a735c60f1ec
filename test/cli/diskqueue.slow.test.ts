import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';
import { diskQueue, diskQueueJson, finished, startBound, startCommand } from './support/command.ts';
import { hashOf, makeNsqQueue, makeQueue, numbered, temporaryFolder } from './support/queue-folder.ts';

const ESCAPE = '\u001b';

describe('escapement', () => {
  it('prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    const { stdout, code } = await finished(startCommand(['--version']));
    expect([stdout.toString().trim(), code]).toEqual([version, 0]);
  });

  it('has help for itself and its commands, with their exit codes', async () => {
    const { stdout, code } = await finished(startCommand(['--help']));
    expect(stdout.toString()).toContain('diskqueue');
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
  ])('%j is wrong usage: 2, and nothing on standard output', async (words, message) => {
    const { stdout, stderr, code } = await finished(startCommand(words));
    expect(stderr).toMatch(message);
    expect([stdout.toString(), code]).toEqual(['', 2]);
  });

  it('reports what is wrong with a folder', async () => {
    const folder = temporaryFolder();
    writeFileSync(`${folder}/file`, '');
    mkdirSync(`${folder}/empty`);
    for (const command of ['ls', 'verify', 'dump', 'repair']) {
      const missing = await diskQueue(command, `${folder}/missing`);
      expect(missing).toEqual({
        stdout: '',
        stderr: `escapement: ${folder}/missing: no such folder\n`,
        code: 2,
      });
      const file = await diskQueue(command, `${folder}/file`);
      expect(file.stderr).toBe(`escapement: ${folder}/file: not a folder\n`);
      const empty = await diskQueue(command, `${folder}/empty/`);
      expect(empty.stderr).toMatch(/empty: there are no queues in this folder\n$/);
      expect(empty.code).toBe(command === 'ls' ? 0 : 2);
    }
    expect((await diskQueue('ls', '//')).stderr).not.toContain('no such folder');
    await makeQueue(folder, 'orders', ['a']);
    const { stderr } = await diskQueue('verify', folder, '--queue', 'order');
    expect(stderr).toBe(`escapement: ${folder}: there is no queue 'order' in this folder. Queues: orders\n`);
  });

  it('reports the file that it cannot read', async () => {
    const folder = temporaryFolder();
    const segment = `${folder}/orders.0000000001.segment`;
    mkdirSync(segment);
    for (const command of ['ls', 'verify', 'dump', 'repair']) {
      const { stderr, code } = await diskQueue(command, folder);
      expect([stderr, code]).toEqual([`escapement: ${segment}: a folder, and should be a file\n`, 2]);
    }
  });

  it('reports the file that it is not permitted to read', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', ['a']);
    chmodSync(`${folder}/orders.0000000001.segment`, 0);
    const { stderr, code } = await finished(startBound(['diskqueue', 'verify'], folder));
    expect(stderr).toBe(`escapement: ${folder}/orders.0000000001.segment: permission denied\n`);
    expect(code).toBe(2);
  });
});

describe('escapement diskqueue ls', () => {
  it('lists the queues of both formats', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', numbered(30), { acked: 20 });
    makeNsqQueue(folder, 'events');
    const before = hashOf(folder);
    const { result, code } = await diskQueueJson('ls', folder);
    expect(result).toEqual({
      folder,
      queues: [
        {
          name: 'events',
          format: 'nsq',
          files: [
            'events.diskqueue.000000.dat',
            'events.diskqueue.000001.dat',
            'events.diskqueue.000002.dat',
          ],
          messages: 5,
          unacknowledged: 4,
          bytes: 14 + 17 + 8 + 10,
          isOpen: false,
        },
        {
          name: 'orders',
          format: 'checked',
          files: readdirSync(folder).filter((file) => file.endsWith('.segment')),
          messages: expect.any(Number) as number,
          unacknowledged: 10,
          bytes: expect.any(Number) as number,
          isOpen: false,
        },
      ],
      failed: [],
    });
    const { stdout, stderr } = await diskQueue('ls', folder);
    expect(stdout).toMatch(/│ events │ nsq +│ +3 │ +5 │ +4 │ +49 bytes │ no +│/);
    expect([stderr, code, stdout.includes(ESCAPE)]).toEqual(['', 0, false]);
    expect(hashOf(folder)).toBe(before);
  });

  it('shows whether a queue is open, in another process too', async () => {
    const folder = temporaryFolder();
    const queue = await DiskQueue.open({ name: 'orders', dataPath: folder });
    await queue.put(Buffer.from('a'));
    const open = await diskQueueJson('ls', folder);
    expect(open.result.queues).toMatchObject([{ name: 'orders', messages: 1, isOpen: true }]);
    await queue.close();
    const closed = await diskQueueJson('ls', folder);
    expect(closed.result.queues).toMatchObject([{ isOpen: false }]);
  });

  it('lists a queue that was read to its end', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', ['a'], { acked: 1 });
    await makeQueue(folder, 'orders', []);
    writeFileSync(`${folder}/somebody.cursor`, 'of another program');
    const { result } = await diskQueueJson('ls', folder);
    expect(result.queues).toMatchObject([{ name: 'orders', files: [], messages: 0, unacknowledged: 0 }]);
  });

  it('prints names that would affect a terminal with escapes', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'or\u001b[31mders\n', ['a']);
    const { stdout } = await diskQueue('ls', folder);
    expect(stdout).toContain('or\\x1b[31mders\\n');
    expect(stdout).not.toContain(ESCAPE);
  });
});

describe('a queue that is in use', () => {
  it('can be listed, verified and dumped meanwhile', async () => {
    const folder = temporaryFolder();
    const queue = await DiskQueue.open({
      name: 'orders',
      dataPath: folder,
      maxBytesPerFile: 256,
      durability: 'os',
    });
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
});
