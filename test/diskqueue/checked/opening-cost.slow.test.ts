import { expect, test } from 'vitest';
import { folderOfFile } from '../../folder.ts';
import { openQueue, receiveAll } from '../crash/open-queue.ts';
import { allRemains, RecordingFileSystem, type Disk } from '../recording-file-system.ts';

const folder = folderOfFile();

const SEGMENT_BYTES = 400_000;
/** What the scan reads at once. */
const BLOCK_BYTES = 128 * 1024;
/** Of a segment, and of its first record. */
const HEADER_BYTES = 128 + 24;
const FOOTER_BYTES = 40;
const MESSAGE_BYTES = 1_000;

/** So many segments, and so many messages of them acknowledged. */
async function build(
  segments: number,
  acked: number,
): Promise<{ closed: Disk; crashed: Disk; messages: number }> {
  const files = new RecordingFileSystem();
  const queue = await openQueue(files, folder, { maxBytesPerFile: SEGMENT_BYTES, durability: 'os' });
  const messages = Math.floor((segments - 0.5) * (SEGMENT_BYTES / (MESSAGE_BYTES + 24)));
  await Promise.all(Array.from({ length: messages }, (_, i) => queue.put(Buffer.alloc(MESSAGE_BYTES, i))));
  const deliveries = await receiveAll(queue);
  for (const delivery of deliveries.slice(0, acked)) delivery.ack();
  await queue.flush();
  const crashed = files.afterPowerCut(files.log.length, allRemains);
  await queue.close();
  return { closed: files.disk, crashed, messages };
}

async function costOfOpening(disk: Disk, depth: number): Promise<number> {
  const files = new RecordingFileSystem(disk);
  const queue = await openQueue(files, folder, {});
  const { bytesRead } = files;
  expect(queue.depth).toBe(depth);
  await queue.close();
  return bytesRead;
}

test.each([2, 30])(
  'opening %d segments reads their headers and footers, and some blocks of one segment',
  async (segments) => {
    for (const acked of [0, 1, 300]) {
      const { closed, messages } = await build(segments, acked);
      const cursorBytes = [...closed].find(([path]) => path.endsWith('.cursor'))?.[1].length ?? 0;
      const cost = await costOfOpening(closed, messages - acked);
      expect(cost).toBeLessThanOrEqual(
        segments * (HEADER_BYTES + FOOTER_BYTES) + cursorBytes + 3 * BLOCK_BYTES,
      );
    }
  },
);

test('opening after a crash reads all of the last segment', async () => {
  const { crashed, messages } = await build(30, 300);
  const cost = await costOfOpening(crashed, messages - 300);
  expect(cost).toBeLessThanOrEqual(
    31 * (HEADER_BYTES + FOOTER_BYTES) + 10_000 + SEGMENT_BYTES + 4 * BLOCK_BYTES,
  );
});

test('opening without a cursor reads no more than with one', async () => {
  const { closed, messages } = await build(30, 0);
  const disk = new Map([...closed].filter(([path]) => !path.endsWith('.cursor')));
  expect(await costOfOpening(disk, messages)).toBeLessThanOrEqual(
    31 * (HEADER_BYTES + FOOTER_BYTES) + BLOCK_BYTES,
  );
});
