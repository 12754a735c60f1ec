import { expect, test } from 'vitest';
import { findEnd, type FoundEnd } from '../../src/log/find-end.ts';
import { SEGMENT_HEADER_BYTES } from '../../src/log/segment.ts';
import { RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { stepOf } from '../runs.ts';
import { BASE, HEADER, segmentOf } from './segment-of.ts';

/** Two messages were synced; three came after that, together. */
const LENGTHS = [100, 700, 900, 20, 1_500];
const SYNCED = 2;
const { bytes, footer, offsets } = segmentOf(
  LENGTHS.map((length, i) => Buffer.alloc(length, i + 1)),
  SYNCED,
);

/** Where the message with that index begins, or the end. */
function at(index: number): number {
  return offsets[index] as number;
}

async function find(content: Buffer = bytes): Promise<FoundEnd> {
  const files = new RecordingFileSystem(new Map([['/segment', content]]));
  const file = await files.open('/segment');
  try {
    return await findEnd(file, content.length, HEADER);
  } finally {
    await file.close();
  }
}

/** What is found of the whole segment. */
const INTACT: FoundEnd = { end: at(5), next: BASE + 5, damages: [] };

test('an intact segment ends behind its last record', async () => {
  expect(await find()).toEqual(INTACT);
  expect(await find(Buffer.concat([bytes, footer]))).toEqual(INTACT);
  expect(await find(Buffer.concat([bytes, footer, Buffer.alloc(99, 7)]))).toEqual(INTACT);
  expect(await find(bytes.subarray(0, 128))).toEqual({ end: 128, next: BASE, damages: [] });
});

test('a segment whose file was cut ends behind its last intact record', async () => {
  for (let size = SEGMENT_HEADER_BYTES; size <= bytes.length; size += stepOf(7)) {
    const index = offsets.findLastIndex((offset) => offset <= size);
    const found = await find(bytes.subarray(0, size));
    expect(found).toEqual({ end: at(index), next: BASE + index, damages: [] });
  }
});

test.each([0, 5_000])(
  'a segment with an unwritten sector ends before the first record in it (%d zeros behind it)',
  async (zeros) => {
    for (let from = at(SYNCED); from < bytes.length; from = (Math.floor(from / 512) + 1) * 512) {
      const copy = Buffer.concat([bytes, Buffer.alloc(zeros)]);
      copy.fill(0, from, Math.min((Math.floor(from / 512) + 1) * 512, copy.length));
      const index = offsets.findLastIndex((offset) => offset <= from);
      expect(await find(copy), `at ${from}`).toEqual({ end: at(index), next: BASE + index, damages: [] });
    }
  },
);

test('an unfinished footer is not damage', async () => {
  for (let size = 1; size < 40; size++) {
    expect(await find(Buffer.concat([bytes, footer.subarray(0, size)]))).toEqual(INTACT);
  }
  expect(await find(Buffer.concat([bytes, Buffer.alloc(40)]))).toEqual(INTACT);
});

test('a flipped bit in a header or a payload costs that record alone', async () => {
  for (const index of LENGTHS.keys()) {
    for (const offset of [at(index), at(index) + 9, at(index) + 23, at(index) + 24, at(index + 1) - 1]) {
      const copy = Buffer.from(bytes);
      copy[offset] = (copy[offset] as number) ^ 0x10;
      const { end, damages } = await find(copy);
      expect(end).toBe(at(5));
      expect(damages).toMatchObject([{ offset: at(index), end: at(index + 1), from: BASE + index }]);
    }
  }
});

test('a flipped bit in the header of the last record is reported, although zeros are behind it', async () => {
  for (const offset of [0, 3, 9, 23]) {
    const copy = Buffer.concat([bytes, Buffer.alloc(5_000)]);
    copy[at(4) + offset] = (copy[at(4) + offset] as number) ^ 0x10;
    const damages = [{ offset: at(4), end: at(5), from: BASE + 4 }];
    expect(await find(copy)).toMatchObject({ end: at(5), damages });
  }
});

test('zeros in synced records are reported as damage', async () => {
  const copy = Buffer.from(bytes).fill(0, at(0), at(1));
  const damages = [{ offset: at(0), from: BASE, to: BASE + 1 }];
  expect(await find(copy)).toMatchObject({ end: at(5), damages });
});

test('a flipped bit in a footer costs no record', async () => {
  for (let bit = 0; bit < 40 * 8; bit++) {
    const damaged = Buffer.from(footer);
    damaged[bit >> 3] = (damaged[bit >> 3] as number) ^ (1 << (bit & 7));
    expect(await find(Buffer.concat([bytes, damaged]))).toEqual(INTACT);
  }
});
