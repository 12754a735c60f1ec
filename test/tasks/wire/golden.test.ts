import { describe, expect, it } from 'vitest';
import type { ServerState } from '../../../src/tasks/broker/broker.ts';
import type { TaskMessage } from '../../../src/tasks/task-message.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  decodeServer,
  decodeWorker,
  encodeEnqueueEvent,
  encodeScheduleEntry,
  encodeServer,
  encodeWorker,
  type ServerHead,
} from '../../../src/tasks/wire/member-codec.ts';
import { decodeTaskMessage, encodeTaskMessage } from '../../../src/tasks/wire/task-message-codec.ts';

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

const nothing: TaskMessage = {
  ...{ id: '', type: '', queue: '', payload: Buffer.alloc(0), headers: {}, group: '', uniqueKey: '' },
  ...{ maxRetry: 0, retried: 0, lastError: '', lastFailedAtMs: 0 },
  ...{ timeoutMs: 0, deadlineMs: 0, retentionMs: 0, completedAtMs: 0 },
};

describe('golden bytes of asynq are read, and written the same', () => {
  it('a task', () => {
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

  it('a task with all there is', () => {
    const task: TaskMessage = {
      ...{ id: 'id1', type: 't', queue: 'q', payload: Buffer.from([1, 2]), headers: { a: 'b' }, group: 'g' },
      ...{ maxRetry: 3, retried: 1, lastError: 'boom', lastFailedAtMs: 1_699_999_999_000 },
      ...{ timeoutMs: 30_000, deadlineMs: 1_700_000_000_000 },
      ...{ retentionMs: 3_600_000, completedAtMs: 1_700_000_100_000 },
      uniqueKey: 'asynq:{q}:unique:t:0cb988d042a7f28dd5fe2b55b3f5ac7a',
    };
    expect(decodeTaskMessage(bytes(GOLDEN.taskWithAll))).toEqual(task);
    expect(hex(encodeTaskMessage(task))).toBe(GOLDEN.taskWithAll);
  });

  it('a server, except for what is less than a millisecond', () => {
    const head: ServerHead = {
      ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { default: 1 }, strictPriority: true },
      status: 'active',
      startedAtMs: 1_700_000_000_001,
    };
    expect(decodeServer(bytes(GOLDEN.server))).toEqual(head);
    const idle = {
      taskId: '',
      taskType: '',
      payload: Buffer.alloc(0),
      queue: '',
      startedAtMs: 0,
      deadlineMs: 0,
    };
    const server: ServerState = { ...head, startedAtMs: 1_700_000_000_000, workers: [idle, idle] };
    const withoutNanos = GOLDEN.server.replace('42080880e2cfaa061005', '42060880e2cfaa06');
    expect(hex(encodeServer(server))).toBe(withoutNanos);
  });

  it('a worker', () => {
    const server: ServerHead = {
      ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: {}, strictPriority: false },
      status: 'active',
      startedAtMs: 0,
    };
    const worker = {
      ...{ taskId: 'id1', taskType: 't', payload: Buffer.from('p'), queue: 'q' },
      ...{ startedAtMs: 1_700_000_000_000, deadlineMs: 1_700_001_800_000 },
    };
    expect(decodeWorker(bytes(GOLDEN.worker))).toEqual(worker);
    expect(hex(encodeWorker(server, worker))).toBe(GOLDEN.worker);
  });

  it('a schedule entry that was never enqueued', () => {
    const entry = {
      ...{ id: 'e', spec: '@every 1m', taskType: 't', payload: new Uint8Array(0) },
      ...{ options: ['Queue("low")', 'MaxRetry(5)'], nextEnqueueAtMs: 1_700_000_060_000, prevEnqueueAtMs: 0 },
    };
    expect(decodeScheduleEntry(bytes(GOLDEN.entry))).toEqual(entry);
    expect(hex(encodeScheduleEntry(entry))).toBe(GOLDEN.entry);
  });

  it('an enqueue event', () => {
    const event = { taskId: 'id1', atMs: 1_700_000_000_123 };
    expect(decodeEnqueueEvent(bytes(GOLDEN.event))).toEqual(event);
    expect(hex(encodeEnqueueEvent(event))).toBe(GOLDEN.event);
  });
});
