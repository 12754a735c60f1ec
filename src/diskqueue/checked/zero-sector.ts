import type { File } from '../file-system.ts';

/** The disk writes this much at once, or not at all. In bytes. */
const SECTOR_BYTES = 512;
/** Read at once. */
const BLOCK_BYTES = 128 * SECTOR_BYTES;

/**
 * Finds where something that was written may not have reached the disk: a sector of a file that was not written before
 * is zeros then (etcd looks for the same).
 *
 * @param from - where a write began; @param to - its end, of which the whole sector is looked at.
 * @returns where the sector, or the part of it after `from`, begins.
 */
export async function findZeroSector(
  file: File,
  from: number,
  to: number,
  size: number,
): Promise<number | undefined> {
  const end = Math.min(roundUp(to), size);
  for (let at = from; at < end; at = nextMultiple(at, BLOCK_BYTES)) {
    const bytes = Buffer.alloc(Math.min(nextMultiple(at, BLOCK_BYTES), end) - at);
    await file.read(bytes, at);
    const found = zeroSectorIn(bytes, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** As `findZeroSector`, in bytes that begin at `offset` in a file. */
export function zeroSectorIn(bytes: Buffer, offset: number): number | undefined {
  for (let at = offset; at < offset + bytes.length; at = nextMultiple(at, SECTOR_BYTES)) {
    const sector = bytes.subarray(at - offset, nextMultiple(at, SECTOR_BYTES) - offset);
    if (sector.every((byte) => byte === 0)) return at;
  }
  return undefined;
}

function roundUp(offset: number): number {
  return Math.ceil(offset / SECTOR_BYTES) * SECTOR_BYTES;
}

/** The first one after `offset`. */
function nextMultiple(offset: number, of: number): number {
  return (Math.floor(offset / of) + 1) * of;
}
