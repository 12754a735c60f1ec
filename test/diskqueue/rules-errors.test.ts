import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import type { EscapementError } from 'escapement';
import type { CorruptionEvent, DiskQueue } from 'escapement/diskqueue';
import { afterEach, describe, expect, onTestFinished, vi } from 'vitest';
import { throwing } from '../timer/support/errors.ts';
import { damagedFolder, LEFT } from './support/damage.ts';
import { RecordingFiles } from './support/recording-files.ts';
import { uncaughtErrors } from '../uncaught-errors.ts';
import {
  bytes,
  DATA,
  drain,
  type Format,
  FORMATS,
  longTexts,
  openQueue,
  openRecorded,
  putAll,
  receiveMany,
  rejection,
  settled,
  temporaryFolder,
  text,
  test,
} from './support/queues.ts';

const io = (operation: string, code = 'EIO'): object => ({
  ...{ name: 'EscapementError', code: 'ERR_QUEUE_IO', op: `DiskQueue.${operation}` },
  cause: { code },
});

async function withFiles(format: Format, options: object = {}) {
  const dataPath = temporaryFolder();
  const { files, queue } = await openRecorded({ format, dataPath, ...options });
  const reopened = async (): Promise<string[]> => {
    await queue.close().catch(() => undefined);
    return drain(await openQueue({ format, dataPath }));
  };
  return { files, dataPath, queue, reopened };
}

describe.each(FORMATS)('%s', (format) => {
  test('a put of bytes that were transferred is refused, and the puts beside it are not', async () => {
    const { queue, reopened } = await withFiles(format);
    const transferred = new Uint8Array(4);
    structuredClone(transferred, { transfer: [transferred.buffer] });
    const puts = [queue.put(bytes('before')), queue.put(transferred), queue.put(bytes('behind'))];
    const results = await Promise.allSettled(puts);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' } });
    expect(await reopened()).toEqual(['before', 'behind']);
  });

  test.each(['always', 'os'] as const)(
    'with %s, a message that there is no memory for is refused, and no refused put is in the queue',
    async (durability) => {
      const { queue, reopened } = await withFiles(format, { durability, maxMessageSize: 4_194_304 });
      const allocate = Buffer.allocUnsafeSlow.bind(Buffer);
      onTestFinished(() => void vi.restoreAllMocks());
      vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation((size) => {
        if (size > 2_097_152) throw new RangeError('Array buffer allocation failed');
        return allocate(size);
      });
      const puts = [bytes('before'), new Uint8Array(3_145_728), bytes('behind')].map((data) =>
        queue.put(data),
      );
      const results = await Promise.allSettled(puts);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
      expect(results[1]).toMatchObject({ reason: { message: 'Array buffer allocation failed' } });
      await queue.put(bytes('later'));
      expect(queue.depth).toBe(2);
      expect(await reopened()).toEqual(['before', 'later']);
    },
  );

  test.each([
    ['write', 'always'],
    ['write', 'os'],
    ['write', 'interval'],
    ['sync', 'always'],
  ] as const)(
    'a put that fails at %s, with durability %s, rejects with ERR_QUEUE_IO and the cause, and changes nothing',
    async (call, durability) => {
      const { files, queue, reopened } = await withFiles(format, { durability });
      await putAll(queue, 'ab');
      files.fail(call, { part: DATA[format], code: 'ENOSPC' });
      const error = (await rejection(queue.put(bytes('lost')))) as EscapementError;
      expect(error).toMatchObject(io('put', 'ENOSPC'));
      expect(error.message).toMatch(/spool.*ENOSPC/);
      expect(queue.depth).toBe(2);
      expect(await drain(queue, 1)).toEqual(['a']); // readable meanwhile
      expect(await rejection(queue.put(bytes('lost too')))).toMatchObject(io('put', 'ENOSPC'));
      files.heal();
      await queue.put(bytes('c'));
      expect(await drain(queue, 1)).toEqual(['b']);
      expect(await reopened()).toEqual(['c']);
    },
  );

  test('a put rejects with ERR_QUEUE_IO also if the error of the host is of another realm, as under Jest', async () => {
    const { files, queue } = await withFiles(format);
    files.before = () => {
      throw runInNewContext("Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' })");
    };
    expect(await rejection(queue.put(bytes('lost')))).toMatchObject(io('put', 'ENOSPC'));
    files.heal();
    await queue.close();
  });

  test.each(['create', 'syncFolder'] as const)(
    'a put rejects when a file cannot be created (%s)',
    async (call) => {
      const { files, queue, reopened } = await withFiles(format, { maxBytesPerFile: 256 });
      const [before, more] = [longTexts('abc'), longTexts('defghijk')];
      await putAll(queue, before);
      files.fail(call);
      const results = await Promise.allSettled(more.map((message) => queue.put(bytes(message))));
      const accepted = results.filter(({ status }) => status === 'fulfilled').length;
      expect(accepted).toBeLessThan(8);
      for (const result of results.slice(accepted)) expect(result).toMatchObject({ reason: io('put') });
      expect(queue.depth).toBe(3 + accepted);
      files.heal();
      await queue.put(bytes('z'));
      const all = [...before, ...more.slice(0, accepted), 'z'];
      expect(await drain(queue, 2)).toEqual(all.slice(0, 2));
      expect(await reopened()).toEqual(all.slice(2));
    },
  );

  test.each([0, 1, 2, 3, 4, 5, 6])(
    'in a batch over several files of which sync %i fails, exactly the resolved puts are delivered',
    async (after) => {
      const { files, queue, reopened } = await withFiles(format, { maxBytesPerFile: 256 });
      await queue.put(bytes('first'));
      files.fail('sync', { part: DATA[format], after, times: 1 });
      const messages = longTexts('abcdefghijklmnopqrstuvwxyz');
      const results = await Promise.allSettled(messages.map((message) => queue.put(bytes(message))));
      files.heal();
      const accepted = messages.filter((_, i) => results[i]?.status === 'fulfilled');
      expect(accepted.length).toBeLessThan(26);
      expect(queue.depth).toBe(1 + accepted.length);
      await queue.put(bytes('last'));
      expect(await reopened()).toEqual(['first', ...accepted, 'last']);
    },
  );

  test('a failed put releases its capacity', async () => {
    const { files, queue } = await withFiles(format, { maxBytesTotal: 10 });
    await queue.put(bytes('12345'));
    files.fail('write', { part: DATA[format] });
    for (let i = 0; i < 5; i++) expect(await rejection(queue.put(bytes('abcde')))).toMatchObject(io('put'));
    files.heal();
    await queue.put(bytes('abcde'));
    expect(await rejection(queue.put(bytes('f')))).toMatchObject({ code: 'ERR_QUEUE_FULL' });
  });

  async function filled() {
    const { dataPath, queue } = await withFiles(format);
    await putAll(queue, 'abc');
    await queue.close();
    const files = new RecordingFiles();
    return { files, queue: await openQueue({ format, dataPath, files }) };
  }

  test.each([
    ['open', 'EMFILE'],
    ['read', 'EIO'],
  ] as const)(
    'an error at %s rejects pending receives and peeks, and the message stays',
    async (call, code) => {
      const { files, queue } = await filled();
      files.fail(call, { code });
      const results = await Promise.allSettled([queue.receive(), queue.peek(), queue.receive()]);
      for (const { status } of results) expect(status).toBe('rejected');
      expect(results[0]).toMatchObject({ reason: { code: 'ERR_QUEUE_IO', cause: { code } } });
      expect(await rejection(queue.peek())).toMatchObject({ code: 'ERR_QUEUE_IO' });
      await expect(queue[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'ERR_QUEUE_IO' });
      files.heal();
      expect(queue.depth).toBe(3);
      expect(await drain(queue)).toEqual(['a', 'b', 'c']);
    },
  );

  test('a receive behind a failing peek does not wait for ever', async () => {
    const { files, queue } = await filled();
    files.fail('read', { times: 1 });
    const [peeked, received] = await Promise.allSettled([queue.peek(), queue.receive()]);
    expect(peeked.status).toBe('rejected');
    expect(received.status).toBe('rejected');
    expect(await drain(queue)).toEqual(['a', 'b', 'c']);
  });

  test('flush rejects when a write fails, and a later flush syncs everything', async () => {
    const { files, queue, reopened } = await withFiles(format);
    await putAll(queue, 'abc');
    const [a] = await receiveMany(queue, 1);
    a?.ack();
    files.fail('write');
    expect(await rejection(queue.flush())).toMatchObject(io('flush'));
    files.heal();
    await queue.flush();
    expect(await reopened()).toEqual(['b', 'c']);
  });

  test('empty rejects when a write fails, but the messages are dropped, and the queue works', async () => {
    const { files, queue, reopened } = await withFiles(format, { maxBytesTotal: 6 });
    await putAll(queue, 'abc');
    const [a] = await receiveMany(queue, 2);
    files.fail('write');
    expect(await rejection(queue.empty())).toMatchObject(io('empty'));
    files.heal();
    a?.nack();
    expect(queue.depth).toBe(0);
    expect(await queue.peek()).toBeUndefined();
    await putAll(queue, ['12345', '6']);
    expect(await drain(queue, 1)).toEqual(['12345']);
    await queue.empty();
    await queue.put(bytes('x'));
    expect(await reopened()).toEqual(['x']);
  });

  test('close rejects when a sync fails, and releases the lock', async () => {
    const { files, queue, reopened } = await withFiles(format, { durability: 'os' });
    await putAll(queue, 'ab');
    files.fail('sync');
    expect(await rejection(queue.close())).toMatchObject(io('close'));
    expect(await rejection(queue.close())).toMatchObject(io('close'));
    expect(await reopened()).toEqual(['a', 'b']); // the machine has not gone down
  });

  test('delete rejects if a file cannot be removed', async () => {
    const { files, queue } = await withFiles(format);
    await putAll(queue, 'ab');
    files.fail('unlink');
    expect(await rejection(queue.delete())).toMatchObject(io('delete'));
  });

  test('delete works on a full disk', async () => {
    const { files, queue, dataPath } = await withFiles(format);
    await putAll(queue, 'ab');
    files.fail('write', { code: 'ENOSPC' });
    await queue.delete();
    expect(readdirSync(dataPath)).toEqual([]);
  });

  test.each(['makeFolder', 'list', 'open', 'read'] as const)(
    'open rejects when %s fails, and releases the lock',
    async (call) => {
      const { queue, dataPath } = await withFiles(format);
      await putAll(queue, 'ab');
      await queue.close();
      const files = new RecordingFiles();
      files.fail(call, { code: 'EACCES' });
      expect(await rejection(openQueue({ format, dataPath, files }))).toMatchObject(io('open', 'EACCES'));
      expect(await drain(await openQueue({ format, dataPath }))).toEqual(['a', 'b']);
    },
  );

  /** A queue of which one message is damaged. */
  async function damaged(onCorruption?: (event: CorruptionEvent) => void): Promise<DiskQueue> {
    return openQueue({ format, dataPath: await damagedFolder(format), onCorruption });
  }

  const left = LEFT[format];

  afterEach(() => vi.restoreAllMocks());

  test('onCorruption is called for damage, which is skipped', async () => {
    const events: CorruptionEvent[] = [];
    const queue = await damaged((event) => events.push(event));
    expect(await drain(queue, left.length)).toEqual(left);
    expect(queue.depth).toBe(0);
    expect(events).toHaveLength(1);
    const lost = { checked: [2, 2], nsq: [undefined, undefined] }; // nsq numbers nothing
    expect([events[0]?.firstSequence, events[0]?.lastSequence]).toEqual(lost[format]);
    expect(events[0]?.bytes).toBeGreaterThan(0);
    expect(events[0]?.reason).not.toBe('');
  });

  test('an error of onCorruption is an uncaught exception, and stops nothing', async () => {
    const uncaught = uncaughtErrors();
    const thrown = new Error('from the handler');
    const queue = await damaged(throwing(thrown));
    expect(await drain(queue, left.length)).toEqual(left);
    await settled();
    expect(uncaught).toEqual([thrown]);
  });

  test('damage is a warning of the process by default', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const queue = await damaged(undefined);
    expect((await receiveMany(queue, left.length)).map(text)).toEqual(left);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]?.[1]).toBe('DiskQueueCorruption');
  });
});

test.each(FORMATS)('%s: puts reject, at the latest a second after the folder was removed', async (format) => {
  const dataPath = temporaryFolder();
  const queue = await openQueue({ format, dataPath });
  await putAll(queue, ['a']);
  rmSync(dataPath, { recursive: true });
  const later = performance.now() + 1_000;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  onTestFinished(() => void vi.restoreAllMocks());
  for (const message of ['b', 'c'])
    await expect(queue.put(bytes(message))).rejects.toMatchObject(io('put', 'ENOENT'));
  await queue.close().catch(() => undefined);
});

test.each(FORMATS)(
  '%s: while the folder is elsewhere, or another one is in its place, messages are not taken for lost',
  async (format) => {
    const dataPath = `${temporaryFolder()}/queue`;
    const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
    const messages = longTexts('abcde');
    await putAll(queue, messages);
    renameSync(dataPath, `${dataPath}.moved`);
    await expect(queue.receive()).rejects.toMatchObject(io('receive', 'ENOENT'));
    mkdirSync(dataPath);
    await expect(queue.receive()).rejects.toMatchObject(io('receive', 'ENOENT'));
    rmdirSync(dataPath);
    renameSync(`${dataPath}.moved`, dataPath);
    expect(await drain(queue)).toEqual(messages);
  },
);
