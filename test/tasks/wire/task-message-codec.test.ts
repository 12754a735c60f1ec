import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCharacter } from '../../any-character.ts';
import type { TaskMessage } from '../../../src/tasks/task-message.ts';
import { TaskMessageSchema } from '../../../src/tasks/wire/asynq-messages.gen.ts';
import {
  decodeTaskMessage,
  encodeAnyTaskMessage,
  encodeTaskMessage,
  writeTaskMessage,
} from '../../../src/tasks/wire/task-message-codec.ts';
import { propertyRuns } from '../../runs.ts';

const text = fc.string({ unit: anyCharacter });
const count = fc.nat({ max: 2 ** 31 - 1 });
const wholeSeconds = fc.nat({ max: 9_000_000_000 }).map((seconds) => seconds * 1_000);
const anyMs = fc.nat({ max: 9_000_000_000_000 });

/** What stands for any time. */
const CENTURY_MS = 36_525 * 86_400_000;

function messages(time: fc.Arbitrary<number>): fc.Arbitrary<TaskMessage> {
  return fc.record({
    ...{ id: text, type: text, queue: text, uniqueKey: text, group: text, lastError: text },
    payload: fc.uint8Array(),
    // A map that comes from the wire has `__proto__` as a name like any other.
    headers: fc.dictionary(fc.oneof(text, fc.constant('__proto__')), text, { noNullPrototype: true }),
    ...{ maxRetry: count, retried: count },
    timeoutMs: time.filter((ms) => ms < CENTURY_MS - 1_000),
    ...{ lastFailedAtMs: time, deadlineMs: time, retentionMs: time, completedAtMs: time },
  });
}

const task: TaskMessage = {
  ...{ id: 'id', type: 't', queue: 'q', payload: Buffer.from([1]), headers: {}, group: '', uniqueKey: '' },
  ...{ maxRetry: 3, retried: 0, lastError: '', lastFailedAtMs: 0 },
  ...{ timeoutMs: 30_000, deadlineMs: 0, retentionMs: 0, completedAtMs: 0 },
};

const written = (change: Partial<TaskMessage>): Uint8Array => encodeTaskMessage({ ...task, ...change });
const again = (change: Partial<TaskMessage>): TaskMessage => decodeTaskMessage(written(change));
const refused = (message: RegExp): unknown =>
  expect.objectContaining({ code: 'ERR_WIRE_MESSAGE', message: expect.stringMatching(message) as string });

describe('a task message on the wire', () => {
  it('comes back as it was, if its times are whole seconds', () => {
    fc.assert(
      fc.property(messages(wholeSeconds), (message) => {
        const back = decodeTaskMessage(Buffer.from(encodeTaskMessage(message)));
        expect({ ...back, payload: Uint8Array.from(back.payload) }).toEqual(message);
        expect(Object.entries(back.headers)).toEqual(expect.arrayContaining(Object.entries(message.headers)));
      }),
      propertyRuns(300),
    );
  });

  it('is what the library writes', () => {
    fc.assert(
      fc.property(messages(fc.oneof(wholeSeconds, anyMs, fc.constant(8.64e15))), (message) => {
        const written = writeTaskMessage(message);
        expect(written).toBeDefined();
        expect(written && Uint8Array.from(written)).toEqual(Uint8Array.from(encodeAnyTaskMessage(message)));
      }),
      propertyRuns(1_000),
    );
  });

  it('is written by the library if it is long', () => {
    for (const change of [
      { payload: Buffer.alloc(20_000, 1) },
      { lastError: 'ü'.repeat(10_000) },
      { headers: { ['n'.repeat(6_000)]: 'v', v: 'ü'.repeat(6_000) } },
    ]) {
      expect(writeTaskMessage({ ...task, ...change })).toBeUndefined();
      expect(decodeTaskMessage(Buffer.from(written(change)))).toEqual({ ...task, ...change });
    }
  });

  it('is not changed by what is written after it', () => {
    const first = written({ id: 'first' });
    const copy = Uint8Array.from(first);
    written({ id: 'a second one' });
    expect(Uint8Array.from(first)).toEqual(copy);
  });

  it('has no time earlier, and no duration shorter than it was, and neither by a second', () => {
    const names = ['lastFailedAtMs', 'timeoutMs', 'deadlineMs', 'retentionMs', 'completedAtMs'] as const;
    fc.assert(
      fc.property(messages(anyMs), (message) => {
        const back = decodeTaskMessage(encodeTaskMessage(message));
        for (const name of names) {
          expect(back[name] - message[name]).toBeGreaterThanOrEqual(0);
          expect(back[name] - message[name]).toBeLessThan(1_000);
        }
      }),
      propertyRuns(300),
    );
  });

  it('has a timeout of a second if it was less, and none only if there was none', () => {
    expect(again({ timeoutMs: 1 }).timeoutMs).toBe(1_000);
    expect(again({ timeoutMs: 0 }).timeoutMs).toBe(0);
  });

  it('never has neither timeout nor deadline, which Go takes for an error', () => {
    const wire = (change: Partial<TaskMessage>): unknown => {
      const bytes = written(change);
      expect(Buffer.from(bytes)).toEqual(Buffer.from(encodeAnyTaskMessage({ ...task, ...change })));
      const { timeout, deadline } = fromBinary(TaskMessageSchema, bytes);
      return [timeout, deadline];
    };
    expect(wire({ timeoutMs: 0 })).toEqual([BigInt(CENTURY_MS / 1_000), 0n]);
    expect(wire({ timeoutMs: 0, deadlineMs: 5_000 })).toEqual([0n, 5n]);
    expect(wire({ timeoutMs: CENTURY_MS + 1 })).toEqual([BigInt(CENTURY_MS / 1_000), 0n]);
  });

  it('can be written after a failure that is no Unicode', () => {
    expect(again({ lastError: 'half \ud83d of a pair' }).lastError).toBe('half \ufffd of a pair');
  });

  it('cannot be written with an id, a type or a header that is no Unicode', () => {
    expect(() => written({ id: '\ud83d' })).toThrow(refused(/cannot be encoded as asynq.TaskMessage/));
    expect(() => written({ type: '\ud83d' })).toThrow(refused(/'type' is not well-formed Unicode/));
    expect(() => written({ headers: { a: '\udc00' } })).toThrow(refused(/headers: 'a'/));
    expect(() => written({ headers: { '\udc00': '' } })).toThrow(refused(/headers: '\ufffd'/));
  });

  it('cannot be written with counts that Go would cut off', () => {
    expect(() => written({ maxRetry: 2 ** 31 })).toThrow(refused(/invalid int32/));
    expect(() => written({ retried: 0.5 })).toThrow(refused(/invalid int32/));
    expect(() => written({ deadlineMs: NaN })).toThrow(refused(/cannot be encoded/));
  });
});

describe('bytes that are no task message', () => {
  it('are read to a shorter message or refused when they are cut off, never anything else', () => {
    const whole = Buffer.from(written({ headers: { a: 'b' }, lastError: 'boom', group: 'g' }));
    let refusals = 0;
    for (let length = 0; length < whole.length; length++) {
      try {
        decodeTaskMessage(whole.subarray(0, length));
      } catch (error) {
        expect(error).toEqual(refused(/cannot decode \d+ bytes as asynq.TaskMessage/));
        refusals++;
      }
    }
    expect(refusals).toBeGreaterThan(whole.length / 2);
  });

  it('are refused with a code, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeTaskMessage(bytes);
        } catch (error) {
          expect(error).toEqual(refused(/cannot decode \d+ bytes as asynq.TaskMessage: ./));
        }
      }),
      propertyRuns(1_000),
    );
  });

  it('are refused if a string is no UTF-8', () => {
    expect(() => decodeTaskMessage(Buffer.from([0x0a, 0x02, 0xc3, 0x28]))).toThrow(
      refused(/cannot decode 4 bytes as asynq.TaskMessage/),
    );
  });

  it('may have fields that nobody knows, which are gone when it is written again', () => {
    const bytes = written({});
    const unknown = Buffer.from([0xa2, 0x06, 0x01, 0x78]); // field 100: "x"
    const message = decodeTaskMessage(Buffer.concat([bytes, unknown]));
    expect(message).toEqual(task);
    expect(encodeTaskMessage(message)).toEqual(bytes);
  });

  it('may have times that no date has, which are the last of dates', () => {
    const largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    const message = decodeTaskMessage(Buffer.from([0x48, ...largest])); // field 9, deadline
    expect(message.deadlineMs).toBe(8.64e15);
    expect(decodeTaskMessage(encodeTaskMessage(message)).deadlineMs).toBe(8.64e15);
  });
});
