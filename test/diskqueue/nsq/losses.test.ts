import { truncateSync } from 'node:fs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import {
  drain,
  expectWhole,
  messages,
  put,
  QueueFolder,
  readAll,
  record,
  records,
  texts,
  opened,
} from './queue-folder.ts';

/*
 * What go-diskqueue loses, one test for each way, with files as it leaves them. What the format allows to keep is kept.
 */

/** Opens and closes a queue. Returns what it reports. */
async function damagesIn(folder: QueueFolder): Promise<CorruptionEvent[]> {
  const { log, damages } = await folder.open();
  await log.close();
  return damages;
}

it('without metadata every message is delivered, and no file is written over', async () => {
  const folder = QueueFolder.of({ 0: records(messages(5)) });
  await expectWhole(folder, texts(messages(5)));
});

it('after the metadata is lost, old bytes are never delivered as new messages', async () => {
  const folder = QueueFolder.of({ 0: records(messages(10)) });
  const { log } = await folder.open();
  await put(log, messages(3, 500));
  expect(folder.data).toEqual(['0', '1']);
  const copy = folder.killed();
  copy.remove('q.diskqueue.meta.dat');
  await log.close();
  await expectWhole(copy, texts([...messages(10), ...messages(3, 500)]));
});

it('with stale metadata, reading continues to the end of the file, and the depth is right from the start', async () => {
  const folder = QueueFolder.of({ 0: records(messages(8)) }, '6\n0,0\n0,84\n');
  await expectWhole(folder, texts(messages(8)));
});

it('with stale metadata, later records are never written over', async () => {
  const folder = QueueFolder.of({ 0: records(messages(5)) }, '3\n0,0\n0,42\n');
  const { log } = await folder.open();
  await put(log, messages(1, 5));
  expect(folder.data).toEqual(['0', '1']);
  expect(folder.metadata).toBe('6\n0,0\n1,14\n');
  await log.close();
  await expectWhole(folder, texts(messages(6)));
});

it('with stale metadata, messages that were consumed since are delivered again', async () => {
  const folder = QueueFolder.of({ 0: records(messages(5)) }, '5\n0,0\n0,70\n');
  await expectWhole(folder, texts(messages(5)));
});

// Whether somebody has removed it, or the original has consumed it and was killed then, cannot be told.
it('a missing first file is reported, and reading continues in the next file', async () => {
  const folder = QueueFolder.of(
    { 1: records(messages(10, 10)), 2: records(messages(2, 20)) },
    '20\n0,28\n2,28\n',
  );
  const copy = folder.killed();
  const { log, damages } = await copy.open();
  const file = copy.pathOf(copy.file(0));
  expect(damages).toEqual([{ file, offset: 28, bytes: 0, reason: 'the file is missing' }]);
  await log.close();
  await expectWhole(folder, texts([...messages(10, 10), ...messages(2, 20)]), 1);
});

it('a missing first file was consumed if the depth is 0', async () => {
  const folder = QueueFolder.of({ 1: records(messages(2)) }, '0\n0,140\n1,0\n');
  await expectWhole(folder, texts(messages(2)));
});

it('the removal of all files is reported', async () => {
  const folder = QueueFolder.of({}, '13\n0,28\n2,28\n');
  expect(await damagesIn(folder)).toMatchObject([
    { file: folder.pathOf(folder.file(0)), offset: 28, bytes: 0, reason: '3 files are missing' },
  ]);
  await expectWhole(folder, []);
});

it('messages put after go-diskqueue has emptied the queue, and deleted the metadata, are found', async () => {
  const folder = QueueFolder.of({ 2: records(messages(3, 50)) });
  await expectWhole(folder, texts(messages(3, 50)));
});

it('files behind the write position are read', async () => {
  const folder = QueueFolder.of({ 0: records(messages(4)), 3: records(messages(4, 4)) }, '4\n0,0\n0,56\n');
  await expectWhole(folder, texts(messages(8)));
});

// nsq/format.test.ts has what damaged metadata is.
it('with damaged metadata no file is written over', async () => {
  const folder = QueueFolder.of({ 0: records(messages(3)) }, '5\n0,0\n0,3');
  await expectWhole(folder, texts(messages(3)));
});

it('with the read position behind the write position, opening ends, and everything is read', async () => {
  const folder = QueueFolder.of({ 0: records(messages(10)), 1: records(messages(2, 10)) }, '2\n7,0\n1,28\n');
  await expectWhole(folder, texts(messages(12)));
});

it.each([-5, 0, 77])('a depth of %i in the metadata is replaced by the number of records', async (depth) => {
  const folder = QueueFolder.of(
    { 0: records(messages(10)), 1: records(messages(2, 10)) },
    `${depth}\n0,28\n1,28\n`,
  );
  await expectWhole(folder, texts(messages(10, 2)));
});

it('a temporary metadata file that a full disk has left is removed', async () => {
  const folder = new QueueFolder();
  folder.write('q.diskqueue.meta.dat.5577006791947779410.tmp', Buffer.alloc(0));
  await expectWhole(folder, []);
  expect(folder.names.filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

describe('the end of the last file', () => {
  it.each([1, 3, 4, 5, 13])(
    '%i bytes of a torn record at the end of the last file are cut off, and the records before them are kept',
    async (bytes) => {
      const last = record('message003').subarray(0, bytes);
      const folder = QueueFolder.of({ 0: Buffer.concat([records(messages(3)), last]) }, '1\n0,0\n0,14\n');
      expect(await damagesIn(folder)).toEqual([]);
      expect(folder.read(folder.file(0))).toEqual(records(messages(3)));
      expect(folder.metadata).toBe('3\n0,0\n1,0\n'); // go-diskqueue reads three messages, and goes on in the next file
      await expectWhole(folder, texts(messages(3)));
      expect(folder.data).not.toContain('0.bad');
    },
  );

  it.each([1, 4, 7, 4096])('%i zeros at the end of the last file are not messages', async (zeros) => {
    const folder = QueueFolder.of(
      { 0: Buffer.concat([records(messages(3)), Buffer.alloc(zeros)]) },
      '2\n0,0\n0,28\n',
    );
    await expectWhole(folder, texts(messages(3)));
  });

  it('without metadata, zeros at the end of the last file are not messages', async () => {
    const folder = QueueFolder.of({ 0: Buffer.concat([records(messages(3)), Buffer.alloc(200_000)]) });
    await expectWhole(folder, texts(messages(3)));
  });

  it('an empty message survives a kill, because the metadata covers it', async () => {
    const { folder, log } = await opened({ isAlwaysDurable: false });
    await log.append([...messages(1), Buffer.alloc(0), Buffer.alloc(0)]);
    const copy = folder.killed();
    await log.close();
    await expectWhole(copy, ['message000', '', '']);
  });

  it('a last file that is too short is reported, and its records are delivered', async () => {
    const folder = QueueFolder.of({ 0: records(messages(3)) }, '5\n0,14\n0,70\n');
    const file = folder.pathOf(folder.file(0));
    const reason = 'the file is shorter than it was';
    expect(await damagesIn(folder)).toEqual([{ file, offset: 42, bytes: 28, reason }]);
    await expectWhole(folder, texts(messages(2, 1)));
  });

  it('a last file that lacks consumed records only is not reported', async () => {
    const folder = QueueFolder.of({ 0: records(messages(3)) }, '0\n0,70\n0,70\n');
    await expectWhole(folder, []);
  });

  it('a missing last file is reported', async () => {
    const folder = QueueFolder.of({}, '5\n3,14\n3,70\n');
    expect(await damagesIn(folder)).toMatchObject([{ offset: 14, bytes: 56, reason: 'the file is missing' }]);
    await expectWhole(folder, []);
    expect(folder.data).toEqual(['4']);
  });
});

it('a damaged length costs the rest of its file, which is set aside once its other messages are acknowledged', async () => {
  const bytes = records(messages(10));
  bytes.writeInt32BE(-1, 42);
  const folder = QueueFolder.of({ 0: bytes });
  folder.write(folder.file(1), records(messages(4, 10)));
  folder.metadata = '14\n0,0\n1,56\n';
  const file = folder.pathOf(folder.file(0));
  const { log, damages } = await folder.open();
  expect(damages).toEqual([{ file, offset: 42, bytes: 98, reason: 'no record begins here' }]);
  expect(log.depth).toBe(7);
  const all = await readAll(log);
  expect(texts(all)).toEqual(texts([...messages(3), ...messages(4, 10)]));
  await log.saveAcks(true);
  expect(folder.data).toEqual(['0', '1']);
  for (const message of all.slice(0, 3)) log.acknowledge(message);
  await log.saveAcks(true);
  expect(folder.data).toEqual(['0.bad', '1']);
  expect(folder.read(`${folder.file(0)}.bad`)).toEqual(bytes);
  expect(folder.metadata).toBe('4\n1,0\n1,56\n');
  await log.close();
  await expectWhole(folder, texts(messages(4, 10)));
});

it('with a damaged length in the current file, writing continues in the next one', async () => {
  const bytes = records(messages(5));
  bytes.writeInt32BE(0x40000000, 14);
  const folder = QueueFolder.of({ 0: bytes }, '5\n0,0\n0,70\n');
  const { log, damages } = await folder.open();
  expect(damages).toHaveLength(1);
  await put(log, messages(1, 5));
  expect(await drain(log)).toEqual(['message000', 'message005']);
  await log.saveAcks(true);
  expect(folder.data).toEqual(['0.bad', '1']);
});

it('a length behind the write position that no record can have is damage', async () => {
  const bytes = records(messages(5));
  bytes.writeInt32BE(0x40000000, 28);
  const folder = QueueFolder.of({ 0: bytes }, '1\n0,0\n0,14\n');
  const { log, damages } = await folder.open();
  expect(damages).toMatchObject([{ offset: 28, bytes: 42 }]);
  expect(await drain(log)).toEqual(texts(messages(2)));
  await log.close();
  expect(folder.data).toEqual(['0.bad']);
  expect(folder.read(`${folder.file(0)}.bad`)).toEqual(bytes);
});

it('damage of a payload is not detected in this format', async () => {
  const bytes = records(messages(2));
  bytes.write('M', 4);
  const folder = QueueFolder.of({ 0: bytes }, '2\n0,0\n0,28\n');
  await expectWhole(folder, ['Message000', 'message001']);
});

it('missing files in the middle are reported', async () => {
  const folder = new QueueFolder();
  for (const i of [0, 3, 4]) folder.write(folder.file(i), records(messages(10, i * 10)));
  folder.metadata = '50\n0,0\n4,140\n';
  const file = folder.pathOf(folder.file(1));
  const { log, damages } = await folder.open();
  expect(damages).toEqual([{ file, offset: 0, bytes: 0, reason: '2 files are missing' }]);
  expect(log.depth).toBe(30);
});

it('damage done while the queue is open is reported, and later messages are delivered', async () => {
  const { folder, log, damages } = await opened();
  await put(log, messages(5));
  truncateSync(folder.pathOf(folder.file(0)), 30);
  const all = await readAll(log);
  expect(texts(all)).toEqual(texts(messages(2)));
  expect(damages).toMatchObject([{ offset: 28, bytes: 42 }]);
  expect([log.depth, log.bytes]).toEqual([2, 20]);
  await put(log, messages(2, 5));
  expect(folder.data).toEqual(['0', '1']);
  for (const message of all) log.acknowledge(message);
  expect(await drain(log)).toEqual(texts(messages(2, 5)));
  expect([log.depth, log.bytes]).toEqual([0, 0]);
  await log.close();
  expect(folder.metadata).toBe('0\n1,28\n1,28\n');
  expect(folder.data).toEqual(['0.bad', '1']);
});

it('a file that is removed while the queue is open is reported, and later messages are delivered', async () => {
  const { folder, log, damages } = await opened();
  await put(log, messages(25));
  folder.remove(folder.file(1));
  const all = await readAll(log);
  expect(texts(all)).toEqual(texts([...messages(10), ...messages(5, 20)]));
  expect(damages).toMatchObject([{ offset: 0, bytes: 140, reason: 'the file was removed' }]);
  expect([log.depth, log.bytes]).toEqual([15, 150]);
  for (const message of all) log.acknowledge(message);
  await log.saveAcks(true);
  expect(folder.data).toEqual(['2']);
  await log.close();
  await expectWhole(folder, []);
});

it('a file that is removed while it is written costs the put that finds that out, and no later one', async () => {
  const { folder, log, damages } = await opened();
  await put(log, messages(2));
  folder.remove(folder.file(0));
  const later = performance.now() + 1_000; // a sync looks for the name of its file once a second
  vi.spyOn(performance, 'now').mockReturnValue(later);
  onTestFinished(() => void vi.restoreAllMocks());
  await expect(put(log, messages(1, 2))).rejects.toMatchObject({ code: 'ENOENT' });
  await put(log, messages(2, 3));
  expect(await drain(log)).toEqual(texts(messages(2, 3)));
  expect(damages).toMatchObject([{ offset: 0, bytes: 28, reason: 'the file was removed' }]);
  await log.close();
  await expectWhole(folder, []);
});
