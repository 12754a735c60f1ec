import { expect, test } from 'vitest';
import type { File } from '../../src/log/file-system.ts';
import { SEGMENT_HEADER_BYTES } from '../../src/log/segment.ts';
import { SegmentScan, type SegmentPiece } from '../../src/log/segment-reader.ts';
import { FaultyFileSystem } from '../diskqueue/faulty-file-system.ts';
import { Random } from '../diskqueue/random.ts';
import { RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { FIRST_SEED, runs } from '../runs.ts';
import { BASE, HEADER, segmentOf, type Segment } from './segment-of.ts';

const PATH = '/segment';

/** A disk with one file. @param failingRead - which read of it fails, from 0. */
function diskOf(bytes: Buffer, failingRead = Infinity): FaultyFileSystem {
  const disk = new RecordingFileSystem(new Map([[PATH, bytes]]));
  return new FaultyFileSystem(disk, { call: 'read', nth: failingRead, code: 'EIO', isLasting: false });
}

/** A segment with its footer. */
function sealed(payloads: readonly Buffer[]): Segment {
  const { bytes, footer, ...rest } = segmentOf(payloads);
  return { ...rest, footer, bytes: Buffer.concat([bytes, footer]) };
}

function randomSegment(random: Random): Segment {
  const lengths = Array.from({ length: 1 + random.below(30) }, () =>
    random.chance(0.9) ? random.below(200) : random.below(300_000),
  );
  return sealed(lengths.map((length) => randomBytes(random, length)));
}

/** With many markers in it, or none. */
function randomBytes(random: Random, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const isMarkers = random.chance(0.2);
  for (let i = 0; i < length; i++) bytes[i] = isMarkers ? ([0xec, 0x51][i % 2] as number) : random.below(256);
  return bytes;
}

function scanOf(file: File): SegmentScan {
  return new SegmentScan(file, HEADER, SEGMENT_HEADER_BYTES, BASE);
}

/** Scans a file of these bytes to its end. @returns copies of the pieces. */
async function scanAll(bytes: Buffer, size = bytes.length, disk = diskOf(bytes)): Promise<SegmentPiece[]> {
  const scan = scanOf(await disk.open(PATH, 'read'));
  const all: SegmentPiece[] = [];
  for (let pieces = await scan.next(size); pieces.length > 0; pieces = await scan.next(size)) {
    for (const piece of pieces) {
      all.push(piece.kind === 'record' ? { ...piece, payload: Buffer.from(piece.payload) } : piece);
    }
    expect(all.length).toBeLessThan(1_000);
  }
  return all;
}

/** One piece after the other, no sequence twice, and every message with its own bytes. */
function checkPieces(pieces: readonly SegmentPiece[], { payloads }: Segment): void {
  let offset = SEGMENT_HEADER_BYTES;
  let sequence = BASE;
  for (const piece of pieces) {
    expect(piece.offset).toBe(offset);
    expect(piece.end).toBeGreaterThanOrEqual(offset);
    offset = piece.end;
    if (piece.kind === 'record') {
      expect(piece.sequence).toBe(sequence);
      expect(piece.payload.equals(payloads[sequence - BASE] as Buffer)).toBe(true);
      sequence++;
    } else if (piece.kind === 'damage') {
      expect(piece.from).toBe(sequence);
      sequence = piece.to ?? sequence;
    }
  }
}

test('a scan of an intact segment returns its records and its footer, whatever their lengths', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(30); seed++) {
    const segment = randomSegment(new Random(seed));
    const disk = diskOf(segment.bytes);
    const pieces = await scanAll(segment.bytes, segment.bytes.length, disk);
    checkPieces(pieces, segment);
    expect(pieces.map(({ kind }) => kind)).toEqual([...segment.payloads.map(() => 'record'), 'footer']);
    expect(disk.calls.get('read')).toBeLessThanOrEqual(2 * segment.payloads.length + 2);
  }
});

test('a scan of a randomly damaged segment ends, and returns every intact record and no other', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(200); seed++) {
    const random = new Random(seed);
    const segment = randomSegment(random);
    const bytes = Buffer.from(segment.bytes);
    const isDamaged = segment.payloads.map(() => false);
    for (let n = random.below(5); n >= 0; n--) {
      const from = SEGMENT_HEADER_BYTES + random.below(bytes.length - SEGMENT_HEADER_BYTES);
      const to = Math.min(bytes.length, from + 1 + random.below(random.pick([1, 50, 100_000])));
      if (random.chance(0.5)) bytes.fill(0, from, to);
      else randomBytes(random, to - from).copy(bytes, from);
      for (const i of segment.payloads.keys()) {
        const [start, end] = segment.offsets.slice(i, i + 2) as [number, number];
        if (!bytes.subarray(start, end).equals(segment.bytes.subarray(start, end))) isDamaged[i] = true;
      }
    }
    const pieces = await scanAll(bytes);
    checkPieces(pieces, segment);
    const found = new Set(pieces.map((piece) => (piece.kind === 'record' ? piece.sequence - BASE : -1)));
    for (const [i, isBad] of isDamaged.entries())
      expect(found.has(i), `seed ${seed}, message ${i}`).toBe(!isBad);
  }
});

test('a scan finds the records behind missing and additional bytes', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(100); seed++) {
    const random = new Random(seed);
    const segment = randomSegment(random);
    const at = SEGMENT_HEADER_BYTES + random.below(segment.bytes.length - SEGMENT_HEADER_BYTES);
    const after = segment.bytes.subarray(at + random.below(100));
    const junk = random.chance(0.5) ? Buffer.alloc(0) : randomBytes(random, random.below(1_000));
    const rest = random.chance(0.3) ? Buffer.alloc(0) : after;
    const bytes = Buffer.concat([segment.bytes.subarray(0, at), junk, rest]);
    checkPieces(await scanAll(bytes), segment);
    checkPieces(await scanAll(bytes, bytes.length + 500), segment);
  }
});

test('a scan does not return records of another segment, nor a record twice', async () => {
  const segment = sealed([Buffer.from('one'), Buffer.from('two'), Buffer.from('three')]);
  const [first, second, third, end] = segment.offsets as [number, number, number, number];
  const records = segment.bytes.subarray(first, second);
  const again = Buffer.concat([segment.bytes.subarray(0, third), records, segment.bytes.subarray(third)]);
  const pieces = await scanAll(again);
  expect(pieces.map(({ kind }) => kind)).toEqual(['record', 'record', 'damage', 'record', 'footer']);
  const damage = { offset: third, end: third + records.length, from: BASE + 2, to: BASE + 2 };
  expect(pieces[2]).toMatchObject(damage);
  const without = Buffer.concat([segment.bytes.subarray(0, second), segment.bytes.subarray(third, end)]);
  const left = await scanAll(without);
  expect(left.map(({ kind }) => kind)).toEqual(['record', 'damage', 'record']);
  expect(left[1]).toMatchObject({ offset: second, end: second, from: BASE + 1, to: BASE + 2 });
});

test('a scan whose read fails returns the same pieces when it is repeated', async () => {
  const segment = sealed([Buffer.alloc(10, 'a'), Buffer.alloc(300_000, 'b'), Buffer.alloc(10, 'c')]);
  const damaged = Buffer.from(segment.bytes).fill(0, segment.offsets[2], (segment.offsets[2] as number) + 4);
  const expected = await scanAll(damaged);
  for (let nth = 0; nth < 12; nth++) {
    const scan = scanOf(await diskOf(damaged, nth).open(PATH, 'read'));
    const kinds: string[] = [];
    for (let call = 0; call < 30; call++) {
      const pieces = await scan.next(damaged.length).catch(() => undefined);
      kinds.push(...(pieces ?? []).map(({ kind }) => kind));
    }
    expect(kinds).toEqual(expected.map(({ kind }) => kind));
  }
});

test('a scan of a segment that is being written ends at the given end, and continues later', async () => {
  const segment = sealed([Buffer.from('one'), Buffer.from('two'), Buffer.from('three')]);
  const [, second, third] = segment.offsets as [number, number, number];
  const scan = scanOf(await diskOf(segment.bytes).open(PATH, 'read'));
  expect(await scan.next(second)).toMatchObject([{ kind: 'record', sequence: BASE }]);
  expect(await scan.next(second)).toEqual([]);
  expect(await scan.next(third)).toMatchObject([{ kind: 'record', sequence: BASE + 1 }]);
  expect(scan).toMatchObject({ offset: third, sequence: BASE + 2 });
});
