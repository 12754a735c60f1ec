import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anyCharacter } from '../../any-character.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  decodeServer,
  decodeWorker,
  encodeEnqueueEvent,
  encodeScheduleEntry,
  encodeServer,
  encodeWorker,
} from '../../../src/tasks/wire/member-codec.ts';
import { propertyRuns } from '../../runs.ts';

const text = fc.string({ unit: anyCharacter });
const count = fc.nat({ max: 2 ** 31 - 1 });
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

describe('what servers and schedulers show comes back as it was, to the millisecond', () => {
  it('servers and their workers', () => {
    fc.assert(
      fc.property(server, (state) => {
        const { workers, ...head } = state;
        expect(decodeServer(encodeServer(state))).toEqual(head);
        expect(workers.map((each) => decodeWorker(encodeWorker(head, each)))).toEqual(workers);
      }),
      propertyRuns(200),
    );
  });

  it('entries and events', () => {
    fc.assert(
      fc.property(entry, event, (someEntry, someEvent) => {
        expect(decodeScheduleEntry(encodeScheduleEntry(someEntry))).toEqual(someEntry);
        expect(decodeEnqueueEvent(encodeEnqueueEvent(someEvent))).toEqual(someEvent);
      }),
      propertyRuns(200),
    );
  });
});

describe('bytes that are nothing of that', () => {
  const decoders = { decodeServer, decodeWorker, decodeScheduleEntry, decodeEnqueueEvent };

  it.each(Object.entries(decoders))('are refused with a code by %s', (_name, decode) => {
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
  });

  it('cannot be written with an option that is no Unicode', () => {
    const some = { id: '', spec: '', taskType: '', payload: Buffer.alloc(0), nextEnqueueAtMs: 0 };
    expect(() => encodeScheduleEntry({ ...some, prevEnqueueAtMs: 0, options: ['\ud83d'] })).toThrow(
      expect.objectContaining({ code: 'ERR_WIRE_MESSAGE' }),
    );
  });
});
