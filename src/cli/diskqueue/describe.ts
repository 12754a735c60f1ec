import type { CorruptionEvent } from '../../diskqueue/message-log.ts';
import { count, formatCount } from '../terminal/text.ts';

/** `orders.0000000001.segment at 128, 1,024 bytes, messages 3 to 4: the checksum of a payload is wrong`. */
export function describeDamage({
  file,
  offset,
  bytes,
  firstSequence: first,
  lastSequence: last,
  reason,
}: CorruptionEvent): string {
  const messages =
    first === undefined
      ? []
      : [first === last || last === undefined ? `message ${first}` : `messages ${first} to ${last}`];
  const where = [`${file} at ${formatCount(offset)}`, count(bytes, 'byte'), ...messages].join(', ');
  return `${where}: ${reason}`;
}

/** In the form and the order that `--json` promises. */
export function damageToJson({
  file,
  offset,
  bytes,
  firstSequence,
  lastSequence,
  reason,
}: CorruptionEvent): object {
  return { file, offset, bytes, firstSequence, lastSequence, reason };
}
