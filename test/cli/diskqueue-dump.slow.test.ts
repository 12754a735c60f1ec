import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { diskQueue, finished, startCommand } from './support/command.ts';
import {
  damage,
  hashOf,
  makeNsqQueue,
  makeQueue,
  numbered,
  temporaryFolder,
} from './support/queue-folder.ts';

const BINARY = Buffer.from([0, 1, 0xff, 0x41, 0x0a]);

describe('escapement diskqueue dump', () => {
  it('prints the unacknowledged messages, one a line, and changes nothing', async () => {
    const folder = temporaryFolder();
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

  it('prints messages as text, hex, base64, JSON or raw bytes', async () => {
    const folder = temporaryFolder();
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

  it('needs --queue if there are several queues', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', ['a']);
    makeNsqQueue(folder, 'events');
    const { stderr, code } = await diskQueue('dump', folder);
    expect([stderr, code]).toEqual([
      `escapement: ${folder}: there are several queues; use --queue. Queues: events, orders\n`,
      2,
    ]);
    const { stdout } = await diskQueue('dump', folder, '--queue', 'events');
    expect(stdout).toBe('2\ttwo\n3\tthree\n4\tfour\n5\tfive\n');
    makeNsqQueue(folder, 'orders');
    expect((await diskQueue('dump', folder, '--queue', 'orders')).stderr).toContain('one of each format');
  });

  it('leaves damaged parts out, reports them, and the exit code is 1', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', numbered(3));
    damage(folder, 'orders.0000000001.segment', 128 + 24);
    const { stdout, stderr, code } = await diskQueue('dump', folder);
    expect(stdout).toBe('2\tmessage 2\n3\tmessage 3\n');
    expect(stderr).toBe(`escapement: 1 damaged part left out; 'verify' lists them\n`);
    expect(code).toBe(1);
  });

  it('ends without an error when its reader closes the pipe', async () => {
    const folder = temporaryFolder();
    const messages = Array.from({ length: 2_000 }, () => 'x'.repeat(1_000));
    await makeQueue(folder, 'orders', messages, { maxBytesPerFile: 10_000_000 });
    const child = startCommand(['diskqueue', 'dump', folder]);
    const result = finished(child);
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.stdout?.destroy();
    const { stderr, code } = await result;
    expect([stderr, code]).toEqual(['', 0]);
  });

  it('has the exit code 130 after Ctrl-C', async () => {
    const folder = temporaryFolder();
    const messages = Array.from({ length: 3_000 }, () => 'x'.repeat(2_000));
    await makeQueue(folder, 'orders', messages, { maxBytesPerFile: 10_000_000 });
    const child = startCommand(['diskqueue', 'dump', folder, '--format', 'hex']);
    await once(child.stdout as NodeJS.ReadableStream, 'readable'); // and it is not read on: the command waits
    child.kill('SIGINT');
    const { stderr, code } = await finished(child);
    expect([stderr, code]).toEqual(['', 130]);
  });
});
