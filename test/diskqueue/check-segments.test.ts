import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkSegments } from 'escapement/testing';
import { beforeEach, expect, test } from 'vitest';
import { DiskQueue } from '../../src/diskqueue/disk-queue.ts';
import { folderOfTest } from '../folder.ts';

let folder: string;
beforeEach(() => {
  folder = folderOfTest();
});

async function fill(name: string, format: 'checked' | 'nsq' = 'checked'): Promise<void> {
  const queue = await DiskQueue.open({ name, dataPath: folder, maxBytesPerFile: 256, format });
  for (let i = 0; i < 9; i++) await queue.put(Buffer.alloc(40, i + 1));
  (await queue.receive()).ack();
  await queue.close();
}

/** Changes one byte of a file. */
function damage(file: string, offset: number): void {
  const bytes = readFileSync(join(folder, file));
  bytes.writeUInt8(0xff, offset);
  writeFileSync(join(folder, file), bytes);
}

test('checkSegments accepts intact queues, and ignores other files of the folder', async () => {
  await checkSegments(folder);
  writeFileSync(join(folder, 'notes.txt'), 'not ours');
  writeFileSync(join(folder, 'arrow.cursor'), 'not ours either');
  await fill('one');
  await fill('events', 'nsq');
  await fill('two', 'nsq');
  await fill('another.queue');
  await checkSegments(folder);
});

test('checkSegments names the first problem', async () => {
  await fill('one');
  await fill('two');
  damage('two.0000000002.segment', 170);
  await expect(checkSegments(folder)).rejects.toThrow(
    /^checkSegments: queue 'two': .*two\.0+2\.segment at 128: the checksum of a payload is wrong; messages 2 to 2$/,
  );
});

test('checkSegments of a queue of the nsq format names the first invalid length, and a missing file', async () => {
  await fill('one');
  await fill('two', 'nsq');
  damage('two.diskqueue.000001.dat', 44);
  const reason = /^checkSegments: queue 'two': .*two\.diskqueue\.000001\.dat at 44: no record begins here$/;
  await expect(checkSegments(folder)).rejects.toThrow(reason);
  rmSync(join(folder, 'two.diskqueue.000001.dat'));
  await expect(checkSegments(folder)).rejects.toThrow('two.diskqueue.000001.dat at 0: the file is missing');
});

test.each([
  [undefined, 'ERR_INVALID_ARG_TYPE', 'dir must be a path. Received undefined'],
  ['', 'ERR_INVALID_ARG_TYPE', "dir must be a path. Received ''"],
  [{ dataPath: 'a' }, 'ERR_INVALID_ARG_TYPE', 'dir must be a path. Received [object Object]'],
  ['a\0b', 'ERR_INVALID_ARG_VALUE', 'dir must be a path without null characters'],
])('checkSegments rejects %j, which is not a path', async (dir, code, message) => {
  await expect(checkSegments(dir as string)).rejects.toMatchObject({
    ...{ code, message: expect.stringContaining(message) as string },
  });
});

test('checkSegments rejects if the folder does not exist', async () => {
  await expect(checkSegments(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
});
