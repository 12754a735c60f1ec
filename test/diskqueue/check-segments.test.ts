import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkSegments } from 'escapement/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'escapement-check-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function fill(name: string): Promise<void> {
  const queue = await DiskQueue.open({ name, dataPath: folder, maxBytesPerFile: 256 });
  for (let i = 0; i < 9; i++) await queue.put(Buffer.alloc(40, i + 1));
  (await queue.receive()).ack();
  await queue.close();
}

test('queues that are in order, and whatever else is in the folder', async () => {
  await checkSegments(folder);
  writeFileSync(join(folder, 'notes.txt'), 'not ours');
  writeFileSync(join(folder, 'arrow.cursor'), 'not ours either');
  await fill('one');
  await fill('another.queue');
  await checkSegments(folder);
});

test('names the first thing that does not hold', async () => {
  await fill('one');
  await fill('two');
  const name = readdirSync(folder).filter((file) => /^two.*segment$/.test(file))[1] as string;
  const bytes = readFileSync(join(folder, name));
  bytes.writeUInt8(0xff, 170);
  writeFileSync(join(folder, name), bytes);
  await expect(checkSegments(folder)).rejects.toThrow(
    /^checkSegments: queue 'two': .*two\.0+2\.segment at 128: the checksum of a payload is wrong; messages 2 to 2$/,
  );
});

test('a folder that is not there', async () => {
  await expect(checkSegments(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
});
