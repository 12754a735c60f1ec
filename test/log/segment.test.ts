import { readFileSync } from 'node:fs';
import * as zlib from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  crc32,
  DATA,
  decodeRecordHeader,
  decodeSegmentHeader,
  encodeFooter,
  encodeRecord,
  encodeSegmentHeader,
  isPayloadIntact,
  readUInt64,
  RECORD_HEADER_BYTES,
  shortCrc32,
  writeUInt64,
  type SegmentHeader,
} from '../../src/log/segment.ts';

const HEADER: SegmentHeader = {
  number: 7,
  salt: 0x89_ab_cd_ef,
  baseSequence: 1_001,
  previousEnd: 65_536,
  isAlwaysDurable: true,
  createdWallMs: 1_700_000_000_000,
};

function segment(): Buffer {
  const records = Buffer.alloc(2 * RECORD_HEADER_BYTES + 5);
  const second = encodeRecord(records, 0, DATA, Buffer.from('hello'), 1_001, HEADER.salt, true);
  encodeRecord(records, second, DATA, Buffer.alloc(0), 1_002, HEADER.salt, false);
  const footer = encodeFooter(HEADER, 128 + records.length, 1_003);
  return Buffer.concat([encodeSegmentHeader(HEADER), records, footer]);
}

test('the bytes of a segment are those of the golden file', () => {
  const golden = readFileSync(new URL('../diskqueue/golden/checked-segment.hex', import.meta.url), 'utf8');
  expect(lines(segment())).toBe(golden);
});

/** Sixteen bytes a line. */
function lines(bytes: Buffer): string {
  const hex = bytes.toString('hex').match(/.{1,32}/g) ?? [];
  return hex.map((line) => `${line}\n`).join('');
}

test('a segment header is decoded from either of its copies', () => {
  const bytes = encodeSegmentHeader(HEADER);
  expect(decodeSegmentHeader(bytes)).toEqual(HEADER);
  expect(decodeSegmentHeader(Buffer.from(bytes).fill(0, 0, 64))).toEqual(HEADER);
  expect(decodeSegmentHeader(bytes.subarray(0, 64))).toEqual(HEADER);
  expect(decodeSegmentHeader(bytes.subarray(0, 63))).toBeUndefined();
  expect(decodeSegmentHeader(Buffer.alloc(128))).toBeUndefined();
});

test('a segment header is invalid if any bit of both copies is flipped', () => {
  for (let bit = 0; bit < 64 * 8; bit++) {
    const bytes = encodeSegmentHeader(HEADER);
    for (const copy of [0, 64])
      bytes[copy + (bit >> 3)] = (bytes[copy + (bit >> 3)] as number) ^ (1 << (bit & 7));
    expect(decodeSegmentHeader(bytes)).toBeUndefined();
  }
});

test('a record is decoded with the salt of its segment only', () => {
  const bytes = segment();
  const first = decodeRecordHeader(bytes, 128, HEADER.salt);
  expect(first).toMatchObject({ type: 1, isSyncedBefore: true, length: 5, sequence: 1_001 });
  expect(decodeRecordHeader(bytes, 157, HEADER.salt)).toMatchObject({ isSyncedBefore: false, length: 0 });
  expect(decodeRecordHeader(bytes, 128, HEADER.salt + 1)).toBeUndefined();
  expect(decodeRecordHeader(bytes, 129, HEADER.salt)).toBeUndefined();
  expect([readUInt64(bytes, bytes.length - 16), readUInt64(bytes, bytes.length - 8)]).toEqual([2, 5]);
});

test('a record is invalid if any bit of its header is flipped, and not intact if one of its payload is', () => {
  const record = segment().subarray(128, 157);
  const header = decodeRecordHeader(record, 0, HEADER.salt);
  for (let bit = 0; bit < record.length * 8; bit++) {
    const bytes = Buffer.from(record);
    bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
    const decoded = decodeRecordHeader(bytes, 0, HEADER.salt);
    if (bit < RECORD_HEADER_BYTES * 8) expect(decoded).toBeUndefined();
    else {
      expect(decoded).toEqual(header);
      expect(isPayloadIntact(bytes.subarray(RECORD_HEADER_BYTES), decoded ?? fail())).toBe(false);
    }
  }
});

test('zeros are not a valid record with any salt', () => {
  const salts = fc.integer({ min: 0, max: 2 ** 32 - 1 });
  fc.assert(
    fc.property(salts, (salt) => {
      expect(decodeRecordHeader(Buffer.alloc(100), 0, salt)).toBeUndefined();
    }),
  );
});

function fail(): never {
  throw new Error('no record');
}

test('numbers up to 2^53 are exact', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => {
      const bytes = Buffer.alloc(8);
      writeUInt64(bytes, value, 0);
      expect(bytes.readBigUInt64LE()).toBe(BigInt(value));
      expect(readUInt64(bytes, 0)).toBe(value);
    }),
  );
});

test('the checksum is the CRC-32 of zlib, with a seed and without', () => {
  const theirs = (zlib as { crc32?: (data: Uint8Array, seed?: number) => number }).crc32 ?? crc32;
  expect(shortCrc32(Buffer.from('123456789'), 0, 9, 0)).toBe(0xcb_f4_39_26);
  fc.assert(
    fc.property(fc.uint8Array(), fc.integer({ min: 0, max: 2 ** 32 - 1 }), (data, seed) => {
      expect(shortCrc32(data, 0, data.length, seed)).toBe(theirs(data, seed));
      expect(crc32(data)).toBe(shortCrc32(data, 0, data.length, 0));
    }),
  );
});
