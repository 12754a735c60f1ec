import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ServerHead, ServerState } from '../../../src/tasks/broker/broker-types.ts';
import type { TaskMessage } from '../../../src/tasks/task-options.ts';
import {
  SchedulerEntrySchema,
  TaskMessageSchema,
  WorkerInfoSchema,
} from '../../../src/tasks/wire/asynq-messages.gen.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  decodeServer,
  decodeWorker,
  encodeEnqueueEvent,
  encodeScheduleEntry,
  encodeServer,
  encodeWorker,
  msOfTimestamp,
  timestampOf,
} from '../../../src/tasks/wire/member-codec.ts';
import {
  decodeTaskMessage,
  encodeAnyTaskMessage,
  encodeTaskMessage,
  msOf,
  secondsOf,
  writeTaskMessage,
} from '../../../src/tasks/wire/message-codec.ts';
import { propertyRuns, testProperty } from '../../runs.ts';
import { anyMessage, anyMs, CENTURY_MS, count, text, wholeSeconds } from '../support/any-message.ts';

const nothing: TaskMessage = {
  ...{ id: '', type: '', queue: '', payload: Buffer.alloc(0), headers: {}, group: '', uniqueKey: '' },
  ...{ maxRetry: 0, retried: 0, lastError: '', lastFailedAtMs: 0, key: '' },
  ...{ timeoutMs: 0, deadlineMs: 0, retentionMs: 0, completedAtMs: 0 },
};

const task: TaskMessage = {
  ...nothing,
  ...{ id: 'id', type: 't', queue: 'q', payload: Buffer.from([1]), maxRetry: 3, timeoutMs: 30_000 },
};

const HEAD: ServerHead = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: {}, strictPriority: false },
  ...{ status: 'active', startedAtMs: 0 },
};

const written = (change: Partial<TaskMessage>): Uint8Array => encodeTaskMessage({ ...task, ...change });
const again = (change: Partial<TaskMessage>): TaskMessage => decodeTaskMessage(written(change));
const refused = (message: RegExp): unknown =>
  expect.objectContaining({ code: 'ERR_WIRE_MESSAGE', message: expect.stringMatching(message) as string });

describe('a task message on the wire', () => {
  testProperty(
    'a task message is read as it was written if its times are whole seconds',
    fc.property(anyMessage(wholeSeconds), (message) => {
      const back = decodeTaskMessage(Buffer.from(encodeTaskMessage(message)));
      expect({ ...back, payload: Uint8Array.from(back.payload) }).toEqual(message);
      expect(Object.entries(back.headers)).toEqual(expect.arrayContaining(Object.entries(message.headers)));
      expect(Object.isFrozen(back.headers), 'handlers receive them').toBe(true);
    }),
  );

  testProperty(
    'a task message is written as the protobuf library writes it',
    fc.property(anyMessage(fc.oneof(wholeSeconds, anyMs, fc.constant(8.64e15))), (message) => {
      const written = writeTaskMessage(message);
      expect(written).toBeDefined();
      expect(written && Uint8Array.from(written)).toEqual(Uint8Array.from(encodeAnyTaskMessage(message)));
    }),
    1_000,
  );

  it('texts of any length are written as the protobuf library writes them', () => {
    for (const length of [1, 63, 64, 65, 127, 128, 129, 1_000]) {
      const text = 'a'.repeat(length);
      const headers = { [text]: '', b: text, [`${text}c`]: text };
      const texts = {
        type: text,
        lastError: `${text}\u0080`,
        payload: Buffer.from(text),
        headers,
        key: text,
      };
      for (const [name, value] of Object.entries(texts)) {
        const message = { ...task, [name]: value };
        expect(writeTaskMessage(message), name).toEqual(Buffer.from(encodeAnyTaskMessage(message)));
      }
    }
  });

  it('a long task message is written by the protobuf library', () => {
    const texts = Object.entries(nothing).filter(([, value]) => value === '');
    for (const change of [
      ...texts.map(([name]) => ({ [name]: 'ü'.repeat(10_000) })),
      { payload: Buffer.alloc(20_000, 1) },
      { headers: { ['n'.repeat(6_000)]: 'v', v: 'ü'.repeat(6_000) } },
    ]) {
      expect(writeTaskMessage({ ...task, ...change })).toBeUndefined();
      expect(decodeTaskMessage(Buffer.from(written(change)))).toEqual({ ...task, ...change });
    }
  });

  it('the bytes of a task message are not changed by later messages', () => {
    const first = written({ id: 'first' });
    const copy = Uint8Array.from(first);
    written({ id: 'a second one' });
    expect(Uint8Array.from(first)).toEqual(copy);
  });

  const names = ['lastFailedAtMs', 'timeoutMs', 'deadlineMs', 'retentionMs', 'completedAtMs'] as const;
  testProperty(
    'times and durations of a task message are rounded up by less than a second',
    fc.property(anyMessage(anyMs), (message) => {
      const back = decodeTaskMessage(encodeTaskMessage(message));
      for (const name of names) {
        expect(back[name] - message[name]).toBeGreaterThanOrEqual(0);
        expect(back[name] - message[name]).toBeLessThan(1_000);
      }
    }),
  );

  it('a timeout of less than a second is written as a second', () => {
    expect(again({ timeoutMs: 1 }).timeoutMs).toBe(1_000);
    expect(again({ timeoutMs: 0 }).timeoutMs).toBe(0);
  });

  it('a task message always has a timeout or a deadline, which asynq requires', () => {
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

  it('a task message can be written after a failure that is not well-formed Unicode', () => {
    expect(again({ lastError: 'half \ud83d of a pair' }).lastError).toBe('half \ufffd of a pair');
  });

  it('an id, a type or a header that is not well-formed Unicode cannot be written', () => {
    expect(() => written({ id: '\ud83d' })).toThrow(refused(/cannot be encoded as asynq.TaskMessage/));
    expect(() => written({ type: '\ud83d' })).toThrow(refused(/'type' is not well-formed Unicode/));
    expect(() => written({ headers: { a: '\udc00' } })).toThrow(refused(/headers: 'a'/));
    expect(() => written({ headers: { '\udc00': '' } })).toThrow(refused(/headers: '\ufffd'/));
  });

  it('a time before 1970 is read as it was written', () => {
    expect(again({ deadlineMs: -5_000 }).deadlineMs).toBe(-5_000);
  });

  it('counts of more than 32 bits cannot be written', () => {
    expect(() => written({ maxRetry: 2 ** 31 })).toThrow(refused(/invalid int32/));
    expect(() => written({ retried: 0.5 })).toThrow(refused(/invalid int32/));
    expect(() => written({ deadlineMs: NaN })).toThrow(refused(/cannot be encoded/));
  });
});

describe('bytes that are no task message', () => {
  it('truncated bytes are rejected or decoded as a shorter message', () => {
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

  testProperty(
    'arbitrary bytes are decoded or rejected with an error that has a code',
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        decodeTaskMessage(bytes);
      } catch (error) {
        expect(error).toEqual(refused(/cannot decode \d+ bytes as asynq.TaskMessage: ./));
      }
    }),
    1_000,
  );

  it('bytes with a string that is not UTF-8 are rejected', () => {
    const bytes = Buffer.from([0x0a, 0x02, 0xc3, 0x28]);
    expect(() => decodeTaskMessage(bytes)).toThrow(refused(/cannot decode 4 bytes as asynq.TaskMessage/));
  });

  it('unknown fields are ignored, and are not written again', () => {
    const bytes = written({});
    const unknown = Buffer.from([0xa2, 0x06, 0x01, 0x78]); // field 100: "x"
    const message = decodeTaskMessage(Buffer.concat([bytes, unknown]));
    expect(message).toEqual(task);
    expect(encodeTaskMessage(message)).toEqual(bytes);
  });

  it('times beyond the range of Date are read as the last date, or the first one', () => {
    const least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    expect(decodeTaskMessage(Buffer.from([0x48, ...least])).deadlineMs).toBe(-8.64e15);
    const largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    const message = decodeTaskMessage(Buffer.from([0x48, ...largest])); // field 9, deadline
    expect(message.deadlineMs).toBe(8.64e15);
    expect(decodeTaskMessage(encodeTaskMessage(message)).deadlineMs).toBe(8.64e15);
  });
});

const moment = fc.nat({ max: 9_000_000_000_000 });
const payload = fc.uint8Array();
const queues = fc.dictionary(text, count, { noNullPrototype: true });

const worker = fc.record({
  ...{ taskId: text, taskType: text, payload, queue: text, startedAtMs: moment, deadlineMs: moment },
});
const server = fc.record({
  ...{ id: text, host: text, pid: count, concurrency: count, queues, strictPriority: fc.boolean() },
  status: fc.constantFrom('active' as const, 'stopped' as const, 'closed' as const),
  startedAtMs: moment,
  workers: fc.array(worker, { maxLength: 3 }),
});
const entry = fc.record({
  ...{ id: text, spec: text, taskType: text, payload, options: fc.array(text) },
  ...{ nextEnqueueAtMs: moment, prevEnqueueAtMs: moment },
});
const event = fc.record({ taskId: text, atMs: moment });

testProperty(
  'servers and their workers are read as they were written, to the millisecond',
  fc.property(server, (state) => {
    const { workers, ...head } = state;
    expect(decodeServer(encodeServer(state))).toEqual(head);
    expect(workers.map((each) => decodeWorker(encodeWorker(head, each)))).toEqual(workers);
  }),
  200,
);

testProperty(
  'schedule entries and events are read as they were written, to the millisecond',
  fc.property(entry, event, (someEntry, someEvent) => {
    expect(decodeScheduleEntry(encodeScheduleEntry(someEntry))).toEqual(someEntry);
    expect(decodeEnqueueEvent(encodeEnqueueEvent(someEvent))).toEqual(someEvent);
  }),
  200,
);

describe('bytes that are nothing of that', () => {
  const decoders = { decodeServer, decodeWorker, decodeScheduleEntry, decodeEnqueueEvent };

  it.each(Object.entries(decoders))(
    'bytes that are not valid are rejected with a code by %s',
    (_name, decode) => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
          try {
            decode(bytes);
          } catch (error) {
            expect(error).toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
          }
        }),
        propertyRuns(300),
      );
      expect(() => decode(Buffer.from([0x0a, 0x05, 0x61]))).toThrow(/cannot decode 3 bytes as asynq\./);
      expect(() => decode(Buffer.from([0x0a, 0x01, 0xff]))).toThrow(/cannot decode 3 bytes as asynq\./);
    },
  );

  it('an entry with an option that is not well-formed Unicode cannot be written', () => {
    const some = { id: '', spec: '', taskType: '', payload: Buffer.alloc(0), nextEnqueueAtMs: 0 };
    const encode = (): unknown => encodeScheduleEntry({ ...some, prevEnqueueAtMs: 0, options: ['\ud83d'] });
    expect(encode).toThrow(expect.objectContaining({ code: 'ERR_WIRE_MESSAGE' }));
  });
});

it('times are rounded up to whole seconds, also those with a fraction of a millisecond', () => {
  expect([0, 0.1, 1, 999, 1_000, 1_001].map(secondsOf)).toEqual([0n, 1n, 1n, 1n, 1n, 2n]);
  expect(msOf(30n)).toBe(30_000);
});

it('a timestamp keeps the milliseconds of a time', () => {
  expect(timestampOf(1_700_000_000_123)).toEqual({ seconds: 1_700_000_000n, nanos: 123_000_000 });
  expect(timestampOf(0.5)).toEqual({ seconds: 0n, nanos: 1_000_000 });
  expect(decodeEnqueueEvent(encodeEnqueueEvent({ taskId: '', atMs: 1 })).atMs).toBe(1);
});

it('"never" is written as the zero time of Go, and read from it or from a missing field', () => {
  expect(timestampOf(0)).toEqual({ seconds: -62_135_596_800n, nanos: 0 });
  expect(decodeEnqueueEvent(encodeEnqueueEvent({ taskId: '', atMs: 0 })).atMs).toBe(0);
  expect(msOfTimestamp(undefined)).toBe(0);
  const run = { taskId: '', taskType: '', payload: Buffer.alloc(0), queue: '', startedAtMs: 1 };
  const worker = fromBinary(WorkerInfoSchema, encodeWorker(HEAD, { ...run, deadlineMs: 0 }));
  const never = { id: '', spec: '', taskType: '', payload: Buffer.alloc(0), options: [] };
  const entry = encodeScheduleEntry({ ...never, nextEnqueueAtMs: 0, prevEnqueueAtMs: 0 });
  const { nextEnqueueTime, prevEnqueueTime } = fromBinary(SchedulerEntrySchema, entry);
  for (const time of [worker.deadline, nextEnqueueTime, prevEnqueueTime])
    expect(time).toMatchObject(timestampOf(0));
});

it('a server with unlimited concurrency is written with the greatest 32-bit number', () => {
  const unlimited = { concurrency: Infinity, queues: { q: Number.MAX_SAFE_INTEGER } };
  const { concurrency, queues } = decodeServer(encodeServer({ ...HEAD, ...unlimited, workers: [] }));
  expect([concurrency, queues]).toEqual([2 ** 31 - 1, { q: 2 ** 31 - 1 }]);
});

it('the status of a new Go server is read as stopped, and an unknown status is rejected', () => {
  const withStatus = (status: string): Buffer => Buffer.from([0x3a, status.length, ...Buffer.from(status)]);
  expect(decodeServer(withStatus('new')).status).toBe('stopped');
  expect(() => decodeServer(withStatus('odd'))).toThrow("unknown status 'odd'");
});

const NEVER = { startedAtMs: 0, deadlineMs: 0 };

/** Bytes that protoc wrote from asynq's own .proto. */
const GOLDEN = {
  task: '0a0a656d61696c3a73656e64120e7b22757365725f6964223a34327d1a2431323365343536372d653839622d313264332d613435362d343236363134313734303030220764656661756c74281940880e',
  taskWithAll:
    '0a0174120201021a03696431220171280330013a04626f6f6d401e4880e2cfaa0652336173796e713a7b717d3a756e697175653a743a306362393838643034326137663238646435666532623535623366356163376158ffe1cfaa0660901c68e4e2cfaa067201677a060a0161120162',
  server: '0a016810071a0173200a2a0b0a0764656661756c74100130013a0661637469766542080880e2cfaa0610054802',
  worker: '0a016810071a017322036964312a01743201703a017142060880e2cfaa064a060888f0cfaa06',
  entry:
    '0a0165120940657665727920316d1a01742a0c517565756528226c6f7722292a0b4d61785265747279283529320608bce2cfaa063a0b088092b8c398feffffff01',
  event: '0a03696431120b0880e2cfaa0610c0a9d33a',
};

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const hex = (written: Uint8Array): string => Buffer.from(written).toString('hex');

describe('golden bytes of asynq are read, and written the same', () => {
  it('golden bytes of a task are read, and written the same', () => {
    const task: TaskMessage = {
      ...nothing,
      type: 'email:send',
      payload: Buffer.from('{"user_id":42}'),
      id: '123e4567-e89b-12d3-a456-426614174000',
      queue: 'default',
      maxRetry: 25,
      timeoutMs: 1_800_000,
    };
    expect(decodeTaskMessage(bytes(GOLDEN.task))).toEqual(task);
    expect(hex(encodeTaskMessage(task))).toBe(GOLDEN.task);
  });

  it('golden bytes of a task with all fields are read, and written the same', () => {
    const task: TaskMessage = {
      ...{ id: 'id1', type: 't', queue: 'q', payload: Buffer.from([1, 2]), headers: { a: 'b' }, group: 'g' },
      ...{ maxRetry: 3, retried: 1, lastError: 'boom', lastFailedAtMs: 1_699_999_999_000, key: '' },
      ...{ timeoutMs: 30_000, deadlineMs: 1_700_000_000_000 },
      ...{ retentionMs: 3_600_000, completedAtMs: 1_700_000_100_000 },
      uniqueKey: 'asynq:{q}:unique:t:0cb988d042a7f28dd5fe2b55b3f5ac7a',
    };
    expect(decodeTaskMessage(bytes(GOLDEN.taskWithAll))).toEqual(task);
    expect(hex(encodeTaskMessage(task))).toBe(GOLDEN.taskWithAll);
  });

  it('golden bytes of a server are read, and written the same except for less than a millisecond', () => {
    const head: ServerHead = {
      ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { default: 1 }, strictPriority: true },
      status: 'active',
      startedAtMs: 1_700_000_000_001,
    };
    expect(decodeServer(bytes(GOLDEN.server))).toEqual(head);
    const idle = { ...{ taskId: '', taskType: '', queue: '', payload: Buffer.alloc(0) }, ...NEVER };
    const server: ServerState = { ...head, startedAtMs: 1_700_000_000_000, workers: [idle, idle] };
    const withoutNanos = GOLDEN.server.replace('42080880e2cfaa061005', '42060880e2cfaa06');
    expect(hex(encodeServer(server))).toBe(withoutNanos);
  });

  it('golden bytes of a worker are read, and written the same', () => {
    const worker = {
      ...{ taskId: 'id1', taskType: 't', payload: Buffer.from('p'), queue: 'q' },
      ...{ startedAtMs: 1_700_000_000_000, deadlineMs: 1_700_001_800_000 },
    };
    expect(decodeWorker(bytes(GOLDEN.worker))).toEqual(worker);
    expect(hex(encodeWorker(HEAD, worker))).toBe(GOLDEN.worker);
  });

  it('golden bytes of an entry that was never enqueued are read, and written the same', () => {
    const entry = {
      ...{ id: 'e', spec: '@every 1m', taskType: 't', payload: new Uint8Array(0) },
      ...{ options: ['Queue("low")', 'MaxRetry(5)'], nextEnqueueAtMs: 1_700_000_060_000, prevEnqueueAtMs: 0 },
    };
    expect(decodeScheduleEntry(bytes(GOLDEN.entry))).toEqual(entry);
    expect(hex(encodeScheduleEntry(entry))).toBe(GOLDEN.entry);
  });

  it('golden bytes of an enqueue event are read, and written the same', () => {
    const event = { taskId: 'id1', atMs: 1_700_000_000_123 };
    expect(decodeEnqueueEvent(bytes(GOLDEN.event))).toEqual(event);
    expect(hex(encodeEnqueueEvent(event))).toBe(GOLDEN.event);
  });
});
