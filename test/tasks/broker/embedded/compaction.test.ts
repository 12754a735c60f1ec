import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkBrokerLog } from 'escapement/testing';
import { afterAll, expect, test } from 'vitest';
import { FILE_SYSTEM, type FileSystem } from '../../../../src/log/file-system.ts';
import { newTask, take } from '../../../conformance/broker/support.ts';
import { FaultyFileSystem } from '../../../diskqueue/faulty-file-system.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';

/** For the lock; the files are in memory. */
const folder = mkdtempSync(join(tmpdir(), 'escapement-compaction-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function open(files: FileSystem): Promise<EmbeddedBroker> {
  return EmbeddedBroker.open({ dataPath: folder, maxBytesPerFile: 4_096, ...{ [FILE_SYSTEM]: files } });
}

test('tasks that stay are not written again and again, however many files they fill', async () => {
  const disk = new RecordingFileSystem();
  const broker = await open(disk);
  for (let at = 0; at < 300; at++) await broker.enqueue(newTask({ payload: new Uint8Array(1_000) }));
  const written = disk.log.reduce((sum, done) => sum + (done.kind === 'write' ? done.bytes.length : 0), 0);
  expect((await disk.list(folder)).length).toBeGreaterThan(80);
  expect(written).toBeLessThan(400_000);
  await broker.close();
});

test('a file of a broker whose tasks are all done is removed without being read', async () => {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files);
  files.calls.clear();
  for (let nth = 0; nth < 200; nth++) {
    await broker.enqueue(newTask({ payload: Buffer.alloc(200) }));
    await broker.complete(await take(broker));
  }
  expect(files.calls.get('create')).toBeGreaterThan(10);
  expect(files.calls.get('unlink')).toBeGreaterThan((files.calls.get('create') ?? 0) - 5);
  expect(files.calls.get('read') ?? 0).toBe(0);
  await checkBrokerLog(broker);
  await broker.close();
});

test('a broker that is closed while its log is compacted writes nothing afterwards, and leaves no file open', async () => {
  const broken: string[] = [];
  for (let nth = 0; nth < 40; nth++) {
    const files = new FaultyFileSystem(new RecordingFileSystem());
    const broker = await open(files);
    for (let kept = 0; kept < 30; kept++)
      await broker.enqueue(newTask({ queue: 'kept', payload: Buffer.alloc(100) }));
    for (let done = 0; done < nth; done++) {
      await broker.enqueue(newTask({ payload: Buffer.alloc(300) }));
      await broker.complete(await take(broker));
    }
    const last = broker.enqueue(newTask());
    await new Promise(setImmediate);
    await Promise.all([last, broker.close()]);
    const calls = new Map(files.calls);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    const opened = (calls.get('open') ?? 0) + (calls.get('create') ?? 0);
    if (opened !== calls.get('close'))
      broken.push(`${opened} opened, ${calls.get('close')} closed after ${nth}`);
    expect(files.calls).toEqual(calls);
  }
  expect(broken).toEqual([]);
});
