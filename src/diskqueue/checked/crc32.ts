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

type Crc32 = (data: Uint8Array, value?: number) => number;

/** CRC-32 of many bytes. Node has it since 20.15. */
export const crc32: Crc32 =
  (zlib as { crc32?: Crc32 }).crc32 ?? ((data, seed = 0) => shortCrc32(data, 0, data.length, seed));
