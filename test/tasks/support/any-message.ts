import fc from 'fast-check';
import type { TaskMessage } from '../../../src/tasks/task-options.ts';
import { anyCharacter } from '../../any-character.ts';

export const text = fc.string({ unit: anyCharacter });
export const count = fc.nat({ max: 2 ** 31 - 1 });
export const wholeSeconds = fc.nat({ max: 9_000_000_000 }).map((seconds) => seconds * 1_000);
export const anyMs = fc.nat({ max: 9_000_000_000_000 });

/** Timeout that asynq's format has for none. */
export const CENTURY_MS = 36_525 * 86_400_000;

/** Messages with every field: its type requires the fields of later options, too. */
export function anyMessage(time: fc.Arbitrary<number>): fc.Arbitrary<TaskMessage> {
  return fc.record({
    ...{ id: text, type: text, queue: text, uniqueKey: text, group: text, lastError: text, key: text },
    payload: fc.uint8Array(),
    // A map that comes from the wire has `__proto__` as a name like any other.
    headers: fc.dictionary(fc.oneof(text, fc.constant('__proto__')), text, { noNullPrototype: true }),
    ...{ maxRetry: count, retried: count },
    timeoutMs: time.filter((ms) => ms < CENTURY_MS - 1_000),
    ...{ lastFailedAtMs: time, deadlineMs: time, retentionMs: time, completedAtMs: time },
  });
}
