import * as zlib from 'node:zlib';

const TABLE = makeTable();

function makeTable(): Uint32Array {
  const polynomial = 0xed_b8_83_20;
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? polynomial ^ (crc >>> 1) : crc >>> 1;
    return crc;
  });
}

/** CRC-32 (ISO-HDLC, as zlib has it) of a few bytes: for 20 of them the call of a native function costs more. */
export function shortCrc32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let crc = ~seed;
  for (let i = start; i < end; i++) {
    crc = (TABLE[(crc ^ (bytes[i] as number)) & 0xff] as number) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

/** Indices into the table, by the highest byte of what is there: no two are the same. */
const INDEX_BY_HIGH_BYTE = Uint8Array.from(TABLE.keys()).sort(
  (a, b) => ((TABLE[a] as number) >>> 24) - ((TABLE[b] as number) >>> 24),
);

/** The seed with which `shortCrc32` of these bytes is `crc`: there is one. The same steps, backwards. */
export function seedOfCrc32(bytes: Uint8Array, start: number, end: number, crc: number): number {
  let state = ~crc;
  for (let i = end - 1; i >= start; i--) {
    const index = INDEX_BY_HIGH_BYTE[state >>> 24] as number;
    state = ((state ^ (TABLE[index] as number)) << 8) | (index ^ (bytes[i] as number));
  }
  return ~state >>> 0;
}

type Crc32 = (data: Uint8Array, value?: number) => number;

/** CRC-32 of many bytes. Node has it since 20.15. */
export const crc32: Crc32 =
  (zlib as { crc32?: Crc32 }).crc32 ?? ((data, seed = 0) => shortCrc32(data, 0, data.length, seed));
