import { statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { drain, messages, put, QueueFolder, readAll, record, records, texts } from './queue-folder.ts';

/** Vitest compares large buffers byte by byte. */
function areSame(read: readonly StoredMessage[], expected: readonly Buffer[]): boolean {
  return (
    read.length === expected.length &&
    expected.every((data, i) => data.equals(read[i]?.data ?? Buffer.alloc(0)))
  );
}

describe('the bytes', () => {
  it('are those of the original: a record', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, [Buffer.from('test')]);
    expect(folder.read('q.diskqueue.000000.dat')).toEqual(Buffer.from('0000000474657374', 'hex'));
    await log.close();
  });

  it('are those of the original: metadata', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(
      log,
      ['ab', 'cd', 'ef', 'gh', 'ij'].map((text) => Buffer.from(text)),
    );
    expect(folder.metadata).toBe('5\n0,0\n0,30\n');
    await log.close();
    expect(folder.names).toEqual(['q.diskqueue.000000.dat', 'q.diskqueue.meta.dat']);
    expect(folder.metadata).toBe('5\n0,0\n0,30\n');
  });

  it('are those of the original: a file rolls when the next record would not fit', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    const trace: string[] = [];
    for (const message of messages(11)) {
      await put(log, [message]);
      trace.push(folder.metadata.replaceAll('\n', ' '));
    }
    expect(trace[0]).toBe('1 0,0 0,14 ');
    expect(trace[9]).toBe('10 0,0 0,140 ');
    expect(trace[10]).toBe('11 0,0 1,14 ');
    expect(folder.data).toEqual(['0', '1']);
    await log.close();
  });

  it('name the next file in the metadata before there is one', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(10));
    await log.append(messages(1, 10));
    expect(folder.metadata).toBe('10\n0,0\n1,0\n');
    await log.sync();
    expect(folder.metadata).toBe('11\n0,0\n1,14\n');
    await log.close();
  });

  it('pass a file that was consumed before it was full, when the next one begins', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(10));
    await drain(log);
    await log.append(messages(1, 10));
    expect(folder.metadata).toBe('0\n1,0\n1,0\n');
    await log.close();
  });

  it('are only for the owner', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(1));
    await log.close();
    for (const name of folder.names) expect(statSync(folder.pathOf(name)).mode & 0o777).toBe(0o600);
  });

  it('of an empty queue are those of the original', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    expect(log.hasUnsavedAcks).toBe(false);
    await log.close();
    expect(folder.metadata).toBe('0\n0,0\n0,0\n');
    expect(folder.data).toEqual([]);
  });

  it('of a message that is larger than a file fill one of their own', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    const large = Buffer.alloc(500, 'x');
    await put(log, [messages(1)[0] as Buffer, large, messages(1, 1)[0] as Buffer]);
    expect(folder.data).toEqual(['0', '1', '2']);
    expect(folder.read(folder.file(1))).toEqual(record(large));
    await log.close();
  });
});

describe('reading', () => {
  it('hands out messages in their order, over files', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(35));
    expect(texts(await readAll(log))).toEqual(texts(messages(35)));
    expect(await log.read()).toEqual([]);
    await put(log, messages(5, 35));
    expect(texts(await readAll(log))).toEqual(texts(messages(5, 35)));
    await log.close();
  });

  it('hands out messages of any length: none, and more than a block', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open({ maxBytesPerFile: 1e6 });
    const list = [0, 1, 300_000, 0, 0, 131_068, 131_069, 5, 2_000_000, 0].map((n) => Buffer.alloc(n, 'z'));
    await put(log, list);
    expect(areSame(await readAll(log), list)).toBe(true);
    await log.close();
    const again = await folder.open({ maxBytesPerFile: 1e6 });
    expect(again.log.depth).toBe(10);
    expect(areSame(await readAll(again.log), list)).toBe(true);
    await again.log.close();
    expect(again.damages).toEqual([]);
  });

  it('of what is not on the disk is not possible if durability is always', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await log.append(messages(3));
    expect(await log.read()).toEqual([]);
    expect(log.depth).toBe(0);
    await log.sync();
    expect(texts(await log.read())).toEqual(texts(messages(3)));
    await log.close();
  });

  it('of what is not on the disk is possible otherwise', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open({ isAlwaysDurable: false });
    await log.append(messages(3));
    expect(log.depth).toBe(3);
    expect(log.bytes).toBe(30);
    expect(texts(await log.read())).toEqual(texts(messages(3)));
    await log.close();
  });
});

describe('acknowledging', () => {
  it('counts at once, whatever the order; only the contiguous prefix is kept over a reopen', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(6));
    const all = await readAll(log);
    for (const i of [0, 1, 3, 5]) log.acknowledge(all[i] as (typeof all)[0]);
    log.acknowledge(all[3] as (typeof all)[0]);
    expect([log.depth, log.bytes]).toEqual([2, 20]);
    expect(log.hasUnsavedAcks).toBe(true);
    await log.saveAcks(true);
    expect(log.hasUnsavedAcks).toBe(false);
    expect(folder.metadata).toBe('4\n0,28\n0,84\n');
    await log.close();

    const again = await folder.open();
    expect([again.log.depth, again.log.bytes]).toEqual([4, 40]);
    expect(await drain(again.log)).toEqual(texts(messages(4, 2)));
    await again.log.close();
    expect(folder.metadata).toBe('0\n0,84\n0,84\n');
  });

  it('deletes a file when the metadata that passes it is on the disk', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(25));
    const all = await readAll(log);
    for (const message of all.slice(0, 10)) log.acknowledge(message);
    expect(folder.data).toEqual(['0', '1', '2']);
    await log.saveAcks(false);
    expect(folder.data).toEqual(['1', '2']);
    expect(folder.metadata).toBe('15\n1,0\n2,70\n');
    await log.close();
  });

  it('with the host alone writes nothing as long as no file can go', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(5));
    await drain(log);
    await log.saveAcks(false);
    expect(folder.metadata).toBe('5\n0,0\n0,70\n');
    expect(log.hasUnsavedAcks).toBe(true);
    await log.close();
  });

  it('after the queue was emptied does nothing', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(5));
    const old = await readAll(log);
    await log.empty();
    await put(log, messages(5, 5));
    for (const message of old) log.acknowledge(message);
    expect(log.depth).toBe(5);
    const all = await readAll(log);
    expect(texts(all)).toEqual(texts(messages(5, 5)));
    for (const message of old) log.acknowledge(message);
    expect(log.depth).toBe(5);
    await log.close();
  });

  it('of many messages in reverse keeps them all until the first one', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open({ maxBytesPerFile: 1e6 });
    await put(log, messages(900));
    await put(log, messages(900));
    await put(log, messages(900));
    const all = await readAll(log);
    for (const message of all.slice(1).reverse()) log.acknowledge(message);
    expect(log.depth).toBe(1);
    expect(log.hasUnsavedAcks).toBe(false);
    log.acknowledge(all[0] as (typeof all)[0]);
    expect([log.depth, log.bytes]).toEqual([0, 0]);
    await put(log, messages(1));
    expect(await drain(log)).toEqual(texts(messages(1)));
    await log.close();
  });
});

describe('the end', () => {
  it('of a file that is read while it is written is no damage', async () => {
    const folder = new QueueFolder();
    const { log, damages } = await folder.open();
    for (const message of messages(100)) {
      await put(log, [message]);
      expect(await drain(log)).toEqual(texts([message]));
      await log.saveAcks(true);
    }
    expect(damages).toEqual([]);
    expect(folder.data).toEqual(['9']);
    await log.close();
    expect(folder.metadata).toBe('0\n9,140\n9,140\n');
  });

  it('of a queue that was emptied is in a new file', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(25));
    await log.read();
    await log.empty();
    expect([log.depth, log.bytes]).toEqual([0, 0]);
    expect(folder.metadata).toBe('0\n3,0\n3,0\n');
    expect(folder.data).toEqual([]);
    expect(await log.read()).toEqual([]);
    await put(log, messages(2));
    expect(folder.read(folder.file(3))).toEqual(records(messages(2)));
    expect(await drain(log)).toEqual(texts(messages(2)));
    await log.close();
  });

  it('of a queue that is removed leaves what was put aside, and nothing else', async () => {
    const folder = new QueueFolder();
    const { log } = await folder.open();
    await put(log, messages(25));
    folder.write('q.diskqueue.meta.dat.123.tmp', Buffer.alloc(0));
    folder.write('q.diskqueue.000000.dat.bad', Buffer.from('bad'));
    folder.write('q:c.diskqueue.000000.dat', Buffer.from('of another queue'));
    await log.close();
    await log.remove();
    expect(folder.names).toEqual(['q.diskqueue.000000.dat.bad', 'q:c.diskqueue.000000.dat']);
  });
});

describe('a queue with many messages', () => {
  it('goes on in the same file after a reopen', async () => {
    const folder = new QueueFolder();
    for (let i = 0; i < 4; i++) {
      const { log, damages } = await folder.open();
      expect(log.depth).toBe(i * 3);
      await put(log, messages(3, i * 3));
      await log.close();
      expect(damages).toEqual([]);
    }
    expect(folder.data).toEqual(['0', '1']);
    expect(folder.read(folder.file(0))).toEqual(records(messages(10)));
  });

  it('keeps to a limit that was lowered, and to one that was raised', async () => {
    const folder = new QueueFolder();
    for (const maxBytesPerFile of [140, 28, 280]) {
      const { log } = await folder.open({ maxBytesPerFile });
      await put(log, messages(10));
      await log.close();
    }
    const { log, damages } = await folder.open();
    expect(await drain(log)).toEqual(texts([...messages(10), ...messages(10), ...messages(10)]));
    expect(damages).toEqual([]);
    await log.close();
  });
});
