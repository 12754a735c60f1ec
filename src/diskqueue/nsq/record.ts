/*
 * The bytes of a record: the length of the message, 4, big-endian and signed; the message.
 *
 * There is nothing else, no checksum and no mark: a record is what begins where the one before it ends.
 */

export const RECORD_HEADER_BYTES = 4;

/** @returns where the next record goes. */
export function encodeRecord(bytes: Buffer, at: number, message: Uint8Array): number {
  bytes.writeInt32BE(message.length, at);
  bytes.set(message, at + RECORD_HEADER_BYTES);
  return at + RECORD_HEADER_BYTES + message.length;
}

/** Where the record ends that begins at `at`; undefined if none does that ends at or before `end`. */
export function endOfRecord(length: number, at: number, end: number): number | undefined {
  const recordEnd = at + RECORD_HEADER_BYTES + length;
  return length < 0 || recordEnd > end ? undefined : recordEnd;
}
