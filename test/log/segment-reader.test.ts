import { expect, test } from 'vitest';
import type { File } from '../../src/log/file-system.ts';
import {
  encodeFooter,
  DATA,
  encodeRecord,
  encodeSegmentHeader,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from '../../src/log/segment.ts';
import { SegmentScan, type SegmentPiece } from '../../src/log/segment-reader.ts';
import { Random } from '../diskqueue/random.ts';
import { FIRST_SEED, runs } from '../runs.ts';

const BASE = 100;
const HEADER: SegmentHeader = {
  ...{ number: 1, salt: 12_345, baseSequence: BASE, previousEnd: 0, isAlwaysDurable: true, createdWallMs: 0 },
};

/** A file that is bytes, and counts how often it is read. */
class BytesFile implements File {
  reads = 0;
  failsNext = false;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  read(buffer: Buffer, position: number): Promise<number> {
    this.reads++;
    if (this.failsNext) {
      this.failsNext = false;
      return Promise.reject(new Error('EIO'));
    }
    const { length } = this.#bytes;
    const end = Math.min(position + buffer.length, length);
    return Promise.resolve(this.#bytes.copy(buffer, 0, Math.min(position, length), end));
  }

  write(): Promise<void> {
    throw new Error('read only');
  }

  truncate(): Promise<void> {
    throw new Error('read only');
  }

  sync(): Promise<void> {
    throw new Error('read only');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

interface Segment {
  readonly bytes: Buffer;
  readonly payloads: readonly Buffer[];
  /** Where each record begins; and after them, where the footer does. */
  readonly offsets: readonly number[];
}

function segmentOf(payloads: readonly Buffer[]): Segment {
  const offsets = [SEGMENT_HEADER_BYTES];
  for (const { length } of payloads) offsets.push((offsets.at(-1) as number) + RECORD_HEADER_BYTES + length);
  const bytes = Buffer.alloc(offsets.at(-1) as number);
  encodeSegmentHeader(HEADER).copy(bytes);
  for (const [i, payload] of payloads.entries()) {
    encodeRecord(bytes, offsets[i] as number, DATA, payload, BASE + i, HEADER.salt, false);
  }
  const footer = encodeFooter(
    { records: payloads.length, payloadBytes: 0 },
    BASE + payloads.length,
    HEADER.salt,
  );
  return { bytes: Buffer.concat([bytes, footer]), payloads, offsets };
}

function randomSegment(random: Random): Segment {
  const lengths = Array.from({ length: 1 + random.below(30) }, () =>
    random.chance(0.9) ? random.below(200) : random.below(300_000),
  );
  return segmentOf(lengths.map((length) => randomBytes(random, length)));
}

/** With many markers in it, or none. */
function randomBytes(random: Random, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const isMarkers = random.chance(0.2);
  for (let i = 0; i < length; i++) bytes[i] = isMarkers ? ([0xec, 0x51][i % 2] as number) : random.below(256);
  return bytes;
}

/** Until it ends, with copies of what it says. */
async function scanAll(file: File, size: number): Promise<SegmentPiece[]> {
  const scan = new SegmentScan(file, HEADER, SEGMENT_HEADER_BYTES, BASE);
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
    const file = new BytesFile(segment.bytes);
    const pieces = await scanAll(file, segment.bytes.length);
    checkPieces(pieces, segment);
    expect(pieces.map(({ kind }) => kind)).toEqual([...segment.payloads.map(() => 'record'), 'footer']);
    expect(file.reads).toBeLessThanOrEqual(2 * segment.payloads.length + 2);
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
    const pieces = await scanAll(new BytesFile(bytes), bytes.length);
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
    const bytes = Buffer.concat([
      segment.bytes.subarray(0, at),
      junk,
      random.chance(0.3) ? Buffer.alloc(0) : after,
    ]);
    checkPieces(await scanAll(new BytesFile(bytes), bytes.length), segment);
    checkPieces(await scanAll(new BytesFile(bytes), bytes.length + 500), segment);
  }
});

test('a scan does not return records of another segment, nor a record twice', async () => {
  const segment = segmentOf([Buffer.from('one'), Buffer.from('two'), Buffer.from('three')]);
  const [first, second, third, end] = segment.offsets as [number, number, number, number];
  const records = segment.bytes.subarray(first, second);
  const again = Buffer.concat([segment.bytes.subarray(0, third), records, segment.bytes.subarray(third)]);
  const pieces = await scanAll(new BytesFile(again), again.length);
  expect(pieces.map(({ kind }) => kind)).toEqual(['record', 'record', 'damage', 'record', 'footer']);
  expect(pieces[2]).toMatchObject({
    offset: third,
    end: third + records.length,
    from: BASE + 2,
    to: BASE + 2,
  });
  const without = Buffer.concat([segment.bytes.subarray(0, second), segment.bytes.subarray(third, end)]);
  const left = await scanAll(new BytesFile(without), without.length);
  expect(left.map(({ kind }) => kind)).toEqual(['record', 'damage', 'record']);
  expect(left[1]).toMatchObject({ offset: second, end: second, from: BASE + 1, to: BASE + 2 });
});

test('a scan whose read fails returns the same pieces when it is repeated', async () => {
  const segment = segmentOf([Buffer.alloc(10, 'a'), Buffer.alloc(300_000, 'b'), Buffer.alloc(10, 'c')]);
  const damaged = Buffer.from(segment.bytes).fill(0, segment.offsets[2], (segment.offsets[2] as number) + 4);
  const expected = await scanAll(new BytesFile(damaged), damaged.length);
  for (let nth = 0; nth < 12; nth++) {
    const file = new BytesFile(damaged);
    const scan = new SegmentScan(file, HEADER, SEGMENT_HEADER_BYTES, BASE);
    const kinds: string[] = [];
    for (let call = 0; call < 30; call++) {
      file.failsNext = file.reads === nth;
      const pieces = await scan.next(damaged.length).catch(() => undefined);
      kinds.push(...(pieces ?? []).map(({ kind }) => kind));
    }
    expect(kinds).toEqual(expected.map(({ kind }) => kind));
  }
});

test('a scan of a segment that is being written ends at the given end, and continues later', async () => {
  const segment = segmentOf([Buffer.from('one'), Buffer.from('two'), Buffer.from('three')]);
  const [, second, third] = segment.offsets as [number, number, number];
  const scan = new SegmentScan(new BytesFile(segment.bytes), HEADER, SEGMENT_HEADER_BYTES, BASE);
  expect(await scan.next(second)).toMatchObject([{ kind: 'record', sequence: BASE }]);
  expect(await scan.next(second)).toEqual([]);
  expect(await scan.next(third)).toMatchObject([{ kind: 'record', sequence: BASE + 1 }]);
  expect(scan).toMatchObject({ offset: third, sequence: BASE + 2 });
});
