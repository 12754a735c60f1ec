/** The disk writes this much at once, or not at all. In bytes. */
const SECTOR_BYTES = 512;

/**
 * Whether something that was written may not have reached the disk as a whole: a sector of a file that was not written
 * before is all zeros then (etcd looks for the same).
 *
 * @param offset - where in the file the bytes begin.
 */
export function hasSectorOfZeros(bytes: Buffer, offset: number): boolean {
  for (let from = 0; from < bytes.length; from = nextSector(offset + from) - offset) {
    const part = bytes.subarray(from, nextSector(offset + from) - offset);
    if (part.every((byte) => byte === 0)) return true;
  }
  return false;
}

function nextSector(offset: number): number {
  return (Math.floor(offset / SECTOR_BYTES) + 1) * SECTOR_BYTES;
}
