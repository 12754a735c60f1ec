import { describe, expect } from 'vitest';
import { until } from '../until.ts';
import {
  ACKS,
  bytes,
  DATA,
  drain,
  FORMATS,
  isPending,
  longTexts,
  openQueue,
  openRecorded,
  putAll,
  receiveMany,
  rejection,
  reopened,
  settled,
  temporaryFolder,
  type TestOptions,
  test,
} from './support/queues.ts';

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `message ${i}`);

describe.each(FORMATS)('%s', (format) => {
  test('a put settles only after the sync that covers it', async () => {
    const { files, queue } = await openRecorded({ format });
    await queue.put(bytes('first'));
    const gate = files.hold('sync');
    const put = queue.put(bytes('second'));
    await until('the disk is called', () => gate.waiting === 1);
    expect(await isPending(put)).toBe(true);
    expect(queue.depth).toBe(1);
    gate.open();
    await put;
    expect(queue.depth).toBe(2);
  });

  test('an unsynced message is not delivered', async () => {
    const { files, queue } = await openRecorded({ format });
    await putAll(queue, 'a');
    const gate = files.hold('sync');
    const put = queue.put(bytes('b'));
    await until('the disk is called', () => gate.waiting === 1);
    expect(await drain(queue, 1)).toEqual(['a']);
    const waiting = queue.receive();
    expect(await isPending(waiting)).toBe(true);
    expect(await queue.peek()).toBeUndefined();
    gate.open();
    await put;
    (await waiting).ack();
  });

  test('puts that arrive during a sync share the next one', async () => {
    const { files, queue } = await openRecorded({ format });
    await queue.put(bytes('first'));
    const before = files.count('sync', DATA[format]);
    const gate = files.hold('sync');
    const early = queue.put(bytes('early'));
    await until('the disk is called', () => gate.waiting === 1);
    const late = putAll(queue, texts(64));
    await settled();
    gate.open();
    await Promise.all([early, late]);
    expect(files.count('sync', DATA[format]) - before).toBe(2);
  });

  test('64 callers that put again and again share a sync each time', async () => {
    const { files, queue } = await openRecorded({ format });
    await queue.put(bytes('first'));
    const before = files.count('sync', DATA[format]);
    const caller = async (): Promise<void> => {
      for (const message of texts(10)) await queue.put(bytes(message));
    };
    await Promise.all(Array.from({ length: 64 }, caller));
    expect(queue.depth).toBe(641);
    expect(files.count('sync', DATA[format]) - before).toBe(10);
  });

  const options: TestOptions = { format, durability: 'os', syncTimeoutMs: 10, syncEvery: 5 };

  test('with os nothing is synced until flush or close', async () => {
    const { files, clock, queue } = await openRecorded({ ...options });
    await queue.put(bytes('first'));
    const syncs = (): number => files.count('sync', DATA[format]);
    const before = syncs();
    for (const message of texts(50)) await queue.put(bytes(message));
    await clock.advanceAsync(1_000);
    expect(syncs() - before).toBe(0);
    await queue.flush();
    expect(syncs() - before).toBe(1);
    await queue.flush();
    expect(syncs() - before).toBe(1);
    await queue.put(bytes('last'));
    await queue.close();
    expect(syncs() - before).toBeGreaterThanOrEqual(2);
  });

  test('with os a full file is synced before the next one', async () => {
    const { files, queue } = await openRecorded({ ...options, maxBytesPerFile: 256 });
    await putAll(queue, longTexts('abcde'));
    expect(files.count('create', DATA[format])).toBeGreaterThan(1);
    const [first] = files.calls.filter(
      ({ operation, path }) => operation === 'create' && path.includes(DATA[format]),
    );
    const ofFirst = files.calls.filter(({ path }) => path === first?.path).map(({ operation }) => operation);
    expect(ofFirst.lastIndexOf('sync')).toBeGreaterThan(ofFirst.lastIndexOf('write'));
  });

  test('with os messages can be received before they are synced, and are there after a reopen', async () => {
    const dataPath = temporaryFolder();
    const queue = await openQueue({ ...options, dataPath });
    await putAll(queue, texts(3));
    expect(await drain(queue, 1)).toEqual(['message 0']);
    await queue.close();
    expect(await drain(await openQueue({ ...options, dataPath }))).toEqual(['message 1', 'message 2']);
  });

  async function opened(options: TestOptions = {}) {
    const { files, clock, queue } = await openRecorded({ format, durability: 'interval', ...options });
    await queue.put(bytes('first'));
    await queue.flush();
    const syncs = (): number => files.count('sync', DATA[format]);
    const before = syncs();
    return { files, clock, queue, syncs: () => syncs() - before };
  }

  test.each([
    [100, { syncTimeoutMs: 100 }],
    [2_000, {}],
  ])(
    'a sync runs once, %d ms after the first operation with %j; no timeout is armed while there is nothing to sync',
    async (timeoutMs, options) => {
      const { clock, queue, syncs } = await opened(options);
      expect(clock.pendingWakeups).toBe(0);
      await queue.put(bytes('a'));
      expect(clock.pendingWakeups).toBe(1);
      clock.advance(60);
      await queue.put(bytes('b'));
      clock.advance(timeoutMs - 61);
      await settled();
      expect(syncs()).toBe(0);
      clock.advance(1);
      await until('the disk is called', () => syncs() === 1);
      await settled();
      clock.advance(10_000);
      await settled();
      expect([syncs(), clock.pendingWakeups]).toEqual([1, 0]);
    },
  );

  test('a sync runs after syncEvery operations, acknowledgements included', async () => {
    const { queue, syncs } = await opened({ syncEvery: 5 });
    for (const message of texts(3)) await queue.put(bytes(message));
    const [a, b] = await receiveMany(queue, 2);
    a?.ack();
    await settled();
    expect(syncs()).toBe(0);
    b?.ack();
    await until('the disk is called', () => syncs() === 1);
  });

  test('a sync runs after 2 500 operations by default', async () => {
    const { queue, syncs } = await opened();
    await putAll(queue, texts(2_499));
    await settled();
    expect(syncs()).toBe(0);
    await queue.put(bytes('one more'));
    await until('the disk is called', () => syncs() === 1);
  });

  test('a message that is put while a flush runs is synced by the next timeout', async () => {
    const { files, clock, queue, syncs } = await opened({ syncTimeoutMs: 100 });
    await putAll(queue, 'a');
    const [first] = await receiveMany(queue, 1);
    first?.ack();
    await settled();
    const gate = files.hold('sync', ACKS[format]);
    first?.ack();
    await drain(queue, 1);
    const flushing = queue.flush();
    await until('the disk is called', () => gate.waiting > 0);
    const put = queue.put(bytes('b'));
    if (format === 'checked') await put;
    else expect(await isPending(put)).toBe(true); // for the flush: the end of the messages is in the same file
    gate.open();
    await Promise.all([flushing, put]);
    expect(clock.pendingWakeups).toBe(1);
    const before = syncs();
    clock.advance(100);
    await until('the disk is called', () => syncs() === before + 1);
  });

  test('flush rejects after a failed background sync, as long as its messages are there', async () => {
    const { files, clock, queue } = await opened({ syncTimeoutMs: 100 });
    await queue.put(bytes('a'));
    files.fail('sync', { part: DATA[format] });
    const before = files.count('sync', DATA[format]);
    clock.advance(100);
    await until('the disk is called', () => files.count('sync', DATA[format]) > before);
    await settled();
    files.heal();
    await queue.put(bytes('b'));
    const failed = { code: 'ERR_QUEUE_IO', op: 'DiskQueue.flush' };
    expect(await rejection(queue.flush())).toMatchObject(failed);
    expect(await rejection(queue.flush())).toMatchObject(failed); // asking again has brought nothing to the disk
    for (const delivery of await receiveMany(queue, 2)) {
      expect(await rejection(queue.flush())).toMatchObject(failed);
      delivery.ack();
    }
    await queue.flush();
  });

  test('flush resolves when everything that was put or acknowledged before is on the disk', async () => {
    const { files, queue } = await openRecorded({ format, durability: 'os' });
    await putAll(queue, 'ab');
    const [a] = await receiveMany(queue, 1);
    await queue.flush();
    const gate = files.hold('sync');
    const put = queue.put(bytes('c'));
    a?.ack();
    const flushing = queue.flush();
    expect(await isPending(flushing)).toBe(true);
    await put;
    gate.open();
    await flushing;
    const calls = files.calls.map(({ operation, path }) => `${operation} ${path}`);
    for (const part of [DATA[format], ACKS[format]]) {
      const last = (operation: string): number =>
        calls.findLastIndex((call) => call.startsWith(operation) && call.includes(part));
      expect(last('sync')).toBeGreaterThan(last('write'));
    }
  });

  test('flush makes no calls when there is nothing to sync', async () => {
    const { files, queue } = await openRecorded({ format });
    await putAll(queue, 'ab');
    await queue.flush();
    const before = files.calls.length;
    await Promise.all([queue.flush(), queue.flush(), queue.flush()]);
    expect(files.calls.length).toBe(before);
  });

  test('flush and close work at the same time, in either order', async ({ dataPath }) => {
    for (const round of [1, 2, 3]) {
      const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
      const put = putAll(queue, longTexts('abcdefghijklmnopqrst'));
      const flushed = queue.flush();
      await Promise.all([put, flushed]);
      await drain(queue, 20);
      const flushing = queue.flush();
      await queue.close();
      await flushing;
      expect(await rejection(queue.flush())).toMatchObject({ code: 'ERR_QUEUE_CLOSED' });
      expect([round, queue.depth]).toEqual([round, 0]);
    }
  });

  test.each(['always', 'os', 'interval'] as const)(
    'with %s acknowledgements are on the disk after syncTimeoutMs',
    async (durability) => {
      const { files, clock, queue } = await openRecorded({ format, durability, syncTimeoutMs: 50 });
      await putAll(queue, texts(4));
      await drain(queue, 1);
      await queue.flush();
      const before = files.count('sync', ACKS[format]);
      await drain(queue, 2);
      await settled();
      expect(files.count('sync', ACKS[format])).toBe(before);
      clock.advance(50);
      await until('the disk is called', () => files.count('sync', ACKS[format]) === before + 1);
    },
  );

  // In nsq they are in the metadata, which is always synced: otherwise it could name messages that are not on the disk.
  const together = { checked: 'of one turn', nsq: 'of one timeout' };
  test(`acknowledgements ${together[format]} are written together`, async () => {
    const { files, clock, queue } = await openRecorded({ format });
    await putAll(queue, texts(100));
    await drain(queue, 1);
    await queue.flush();
    const before = files.count('write', ACKS[format]);
    const deliveries = await receiveMany(queue, 50);
    for (const delivery of deliveries) {
      delivery.ack();
      if (format === 'nsq') await settled();
    }
    if (format === 'nsq') {
      expect(files.count('write', ACKS[format])).toBe(before);
      clock.advance(2_000);
    }
    await until('the disk is called', () => files.count('write', ACKS[format]) > before);
    await settled();
    expect(files.count('write', ACKS[format])).toBe(before + 1);
  });

  test('a failed save of acknowledgements is repeated after syncTimeoutMs, and flush resolves then', async () => {
    const { files, clock, queue } = await openRecorded({ format, syncTimeoutMs: 50 });
    await putAll(queue, texts(3));
    files.fail('write', { part: ACKS[format] });
    const writes = files.count('write', ACKS[format]);
    await drain(queue, 1);
    if (format === 'nsq') clock.advance(50); // it saves nothing before
    await until('the disk is called', () => files.count('write', ACKS[format]) > writes);
    await settled();
    const syncs = files.count('sync', ACKS[format]);
    files.heal();
    await until('the failed save is repeated', () => {
      clock.advance(50); // in each turn: the host may not have reported the failure yet
      return files.count('sync', ACKS[format]) > syncs;
    });
    await queue.flush();
    expect(await drain(await reopened(queue))).toEqual(['message 1', 'message 2']);
  });
});
