import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';
import { diskQueue, diskQueueJson } from './support/command.ts';
import {
  damage,
  hashOf,
  makeNsqQueue,
  makeQueue,
  messagesOf,
  numbered,
  temporaryFolder,
} from './support/queue-folder.ts';

const SECOND = 'orders.0000000002.segment';

/** Of thirty messages in three files; one is damaged in the second file, and the third has lost one copy of its header. */
async function damagedFolder(): Promise<string> {
  const folder = temporaryFolder();
  await makeQueue(folder, 'orders', numbered(30), { acked: 2 });
  damage(folder, SECOND, 128 + 24 + 1);
  damage(folder, 'orders.0000000003.segment', 3);
  return folder;
}

describe('escapement diskqueue repair', () => {
  it('prints the steps with --dry-run, and changes nothing', async () => {
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
    const { stdout } = await diskQueue('repair', folder, '--dry-run');
    expect(stdout).toContain('orders (checked): this would be done\n');
    expect(hashOf(folder)).toBe(before);
  });

  it('keeps every intact message in order and the damaged files as copies; a second repair does nothing', async () => {
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

  it('completes what a crash interrupted, without a loss', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', numbered(30));
    const segments = readdirSync(folder).filter((name) => name.endsWith('.segment'));
    const last = segments.sort().at(-1) as string;
    const bytes = readFileSync(join(folder, last));
    writeFileSync(join(folder, last), Buffer.concat([bytes.subarray(0, -40), Buffer.from([0xec, 0x51, 1])]));
    writeFileSync(join(folder, 'orders.cursor.new'), 'x');
    makeNsqQueue(folder, 'events');
    appendFileSync(join(folder, 'events.diskqueue.000002.dat'), Buffer.from([0, 0, 0, 9, 1]));
    const { result, code } = await diskQueueJson('repair', folder);
    expect(code).toBe(0);
    expect(result.queues.map(({ steps }) => steps?.map(({ action }) => action))).toEqual([
      ['seal'],
      ['remove', 'seal'],
    ]);
    expect(readFileSync(join(folder, last))).toEqual(bytes);
    expect((await diskQueue('repair', folder)).stdout).toBe(
      'events (nsq): nothing to do\norders (checked): nothing to do\n',
    );
  });

  it('replaces a damaged cursor: no message is lost, and some are delivered again', async () => {
    const folder = temporaryFolder();
    await makeQueue(folder, 'orders', numbered(10), { acked: 2, maxBytesPerFile: 10_000 });
    for (const slot of [64, 4_096]) damage(folder, 'orders.cursor', slot);
    const { stdout, code } = await diskQueue('repair', folder);
    expect(stdout).toContain('write cursor');
    expect(code).toBe(0);
    expect(await messagesOf(folder, 'orders')).toEqual(numbered(10));
  });

  it('repairs a queue of the nsq format up to the damage', async () => {
    const folder = temporaryFolder();
    makeNsqQueue(folder, 'events');
    damage(folder, 'events.diskqueue.000001.dat', 9);
    expect((await diskQueue('repair', folder)).code).toBe(1);
    const { stdout } = await diskQueue('dump', folder);
    expect(stdout).toBe('2\ttwo\n3\tthree\n4\tfive\n');
    expect((await diskQueue('verify', folder)).code).toBe(0);
    expect((await diskQueue('repair', folder)).stdout).toBe('events (nsq): nothing to do\n');
  });

  it('changes no queue if one of them is open', async () => {
    const folder = await damagedFolder();
    const queue = await DiskQueue.open({ name: 'zebras', dataPath: folder });
    await queue.put(Buffer.from('a'));
    const before = hashOf(folder);
    for (const words of [[], ['--dry-run'], ['--queue', 'zebras']]) {
      const { stdout, stderr, code } = await diskQueue('repair', folder, ...words);
      expect(stderr).toBe(
        `escapement: queue 'zebras' in ${folder} is open; end the process that has it open first\n`,
      );
      expect([stdout, code]).toEqual(['', 2]);
    }
    expect(hashOf(folder)).toBe(before);
    await queue.close();
    expect((await diskQueue('repair', folder, '--queue', 'orders')).code).toBe(1);
  });
});
