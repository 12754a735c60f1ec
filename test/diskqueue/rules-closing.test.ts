import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { until } from '../until.ts';
import { RecordingFiles } from './support/recording-files.ts';
import {
  bytes,
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
  text,
  test,
} from './support/queues.ts';

const closed = (operation: string): object => ({
  ...{ name: 'EscapementError', code: 'ERR_QUEUE_CLOSED', op: `DiskQueue.${operation}` },
});

describe.each(FORMATS)('%s', (format) => {
  test.each(['after', 'during'])(
    'put, receive, peek, empty, flush and delete reject %s close',
    async (when) => {
      const queue = await openQueue({ format });
      const closing = queue.close();
      if (when === 'after') await closing;
      expect(await rejection(queue.put(bytes('a')))).toMatchObject(closed('put'));
      expect(await rejection(queue.receive())).toMatchObject(closed('receive'));
      expect(await rejection(queue.peek())).toMatchObject(closed('peek'));
      expect(await rejection(queue.empty())).toMatchObject(closed('empty'));
      expect(await rejection(queue.flush())).toMatchObject(closed('flush'));
      expect(await rejection(queue.delete())).toMatchObject(closed('delete'));
      await closing;
    },
  );

  test('close rejects puts that wait for capacity and pending receives', async () => {
    const queue = await openQueue({ format, maxBytesTotal: 2, whenFull: 'wait' });
    await putAll(queue, 'ab');
    const puts = Promise.allSettled([queue.put(bytes('c')), queue.put(bytes('d'))]);
    await receiveMany(queue, 2);
    const receives = Promise.allSettled([queue.receive(), queue.receive()]);
    await settled();
    await queue.close();
    for (const result of await puts) expect(result).toMatchObject({ reason: closed('put') });
    for (const result of await receives) expect(result).toMatchObject({ reason: closed('receive') });
  });

  test('close rejects a peek that is reading', async () => {
    const files = new RecordingFiles();
    const first = await openQueue({ format });
    await first.put(bytes('a'));
    const queue = await reopened(first, { files });
    const gate = files.hold('read');
    const peeked = rejection(queue.peek());
    await until('the disk is called', () => gate.waiting === 1);
    const closing = queue.close();
    gate.open();
    expect(await peeked).toMatchObject({ code: 'ERR_QUEUE_CLOSED' });
    await closing;
  });

  test('close ends loops over messages', async () => {
    const queue = await openQueue({ format });
    await putAll(queue, 'ab');
    const seen: string[] = [];
    const loops = [1, 2, 3].map(async () => {
      for await (const data of queue) {
        seen.push(text({ data }));
        await settled();
      }
    });
    await until('both messages are seen', () => seen.length === 2);
    await queue.close();
    await Promise.all(loops);
    for await (const data of queue) seen.push(text({ data }));
    expect(seen).toEqual(['a', 'b']);
  });

  test('a second close does nothing', async () => {
    const queue = await openQueue({ format });
    await queue.put(bytes('a'));
    await Promise.all([queue.close(), queue.close()]);
    await queue.close();
    await queue[Symbol.asyncDispose]();
  });

  test('close completes the puts that had begun', async ({ dataPath }) => {
    const { files, queue } = await openRecorded({ format, dataPath });
    await queue.put(bytes('first'));
    const gate = files.hold('sync');
    const puts = [queue.put(bytes('a'))];
    await until('the disk is called', () => gate.waiting === 1);
    puts.push(queue.put(bytes('b')), queue.put(bytes('c')));
    const closing = queue.close();
    expect(await isPending(closing)).toBe(true);
    gate.open();
    await Promise.all([...puts, closing]);
    expect(await drain(await openQueue({ format, dataPath }))).toEqual(['first', 'a', 'b', 'c']);
  });

  test('await using closes the queue at the end of its block', async ({ dataPath }) => {
    const queue = await openQueue({ format, dataPath });
    {
      await using same = queue;
      await same.put(bytes('a'));
    }
    expect(await drain(await openQueue({ format, dataPath }))).toEqual(['a']);
  });

  test('empty drops every message, durably', async () => {
    const queue = await openQueue({ format, maxBytesPerFile: 256 });
    await putAll(queue, longTexts('abcdefghijklmnopqrstuvwxyz'));
    const [a] = await receiveMany(queue, 3);
    a?.ack();
    await queue.empty();
    expect(queue.depth).toBe(0);
    expect(await queue.peek()).toBeUndefined();
    await queue.put(bytes('x'));
    const again = await reopened(queue);
    expect(await drain(again)).toEqual(['x']);
  });

  test('empty drops the puts before it, and keeps the puts after it', async () => {
    const queue = await openQueue({ format });
    const begun = [putAll(queue, 'abc'), queue.empty(), putAll(queue, 'xyz'), queue.empty()];
    await Promise.all([...begun, putAll(queue, 'pqr')]);
    expect(queue.depth).toBe(3);
    expect(await drain(await reopened(queue))).toEqual(['p', 'q', 'r']);
  });

  test('pending receives keep waiting during empty', async () => {
    const queue = await openQueue({ format });
    const waiting = queue.receive();
    await settled();
    await queue.empty();
    expect(await isPending(waiting)).toBe(true);
    await queue.put(bytes('a'));
    expect(text(await waiting)).toBe('a');
  });

  test('delete removes all files of the queue, and no others', async ({ dataPath }) => {
    writeFileSync(join(dataPath, 'spool'), 'mine');
    const other = await openQueue({ format, dataPath, name: 'spoo' });
    await other.put(bytes('a'));
    const before = readdirSync(dataPath).sort();
    const queue = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
    await putAll(queue, longTexts('abcdefghijklmnopqrstuvwxyz'));
    const [a] = await receiveMany(queue, 3);
    a?.ack();
    await queue.flush();
    await queue.delete();
    expect(readdirSync(dataPath).sort()).toEqual(before);
    expect(await drain(other)).toEqual(['a']);
  });

  test('delete works on a queue that was never used, and on one that was used in an earlier run', async () => {
    const dataPath = temporaryFolder();
    await (await openQueue({ format, dataPath })).delete();
    expect(readdirSync(dataPath)).toEqual([]);
    const first = await openQueue({ format, dataPath, maxBytesPerFile: 256 });
    await putAll(first, longTexts('abcdefghijklmnopqrstuvwxyz'));
    await first.close();
    await (await openQueue({ format, dataPath })).delete();
    expect(readdirSync(dataPath)).toEqual([]);
    expect((await openQueue({ format, dataPath })).depth).toBe(0);
  });

  test('delete works after another program has removed the folder', async () => {
    const dataPath = join(temporaryFolder(), 'queue');
    const queue = await openQueue({ format, dataPath });
    await queue.put(bytes('a'));
    rmSync(dataPath, { recursive: true });
    await queue.delete();
    expect(existsSync(dataPath)).toBe(false);
  });

  test('delete closes the queue', async () => {
    const queue = await openQueue({ format });
    const waiting = queue.receive();
    const deleting = queue.delete();
    expect(await rejection(waiting)).toMatchObject(closed('receive'));
    await deleting;
    await queue.close();
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(closed('put'));
    expect(await rejection(queue.delete())).toMatchObject(closed('delete'));
  });
});
