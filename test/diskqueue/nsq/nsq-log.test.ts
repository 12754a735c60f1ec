import { expect, it, test } from 'vitest';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import { InFlight, type DonePrefix } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { FaultyFileSystem } from '../faulty-file-system.ts';
import { drain, messages, put, readAll, records, texts, opened } from './queue-folder.ts';

test('sync and close reject after a failed sync until the messages that may be lost are acknowledged', async () => {
  const files = new FaultyFileSystem(hostFileSystem, { call: 'sync', nth: 1, code: 'EIO', isLasting: true });
  const { log } = await opened({ files, isAlwaysDurable: false });
  expect(await log.append(messages(10))).toEqual({ appended: 10 }); // saves the metadata, the first sync
  const [next] = messages(1, 10) as [Buffer];
  const eio = { code: 'EIO' };
  expect(await log.append([next])).toMatchObject({ appended: 0, error: eio }); // the full file is synced first
  files.heal();
  expect(await log.append([next])).toEqual({ appended: 1 });
  for (const stored of (await readAll(log)).slice(0, 10)) {
    await expect(log.sync()).rejects.toMatchObject(eio);
    log.acknowledge(stored);
  }
  await log.sync();
  await log.close();
});

it('a file ends, as in go-diskqueue, when the next record would not fit', async () => {
  const { folder, log } = await opened();
  const trace: string[] = [];
  for (const message of messages(11)) {
    await put(log, [message]);
    trace.push(folder.metadata.replaceAll('\n', ' '));
  }
  expect(trace[0]).toBe('1 0,0 0,14 ');
  expect(trace[9]).toBe('10 0,0 0,140 ');
  expect(trace[10]).toBe('11 0,0 1,14 ');
  expect(folder.data).toEqual(['0', '1']);
});

it('the metadata names the next file before it exists', async () => {
  const { folder, log } = await opened();
  await put(log, messages(10));
  await log.append(messages(1, 10));
  expect(folder.metadata).toBe('10\n0,0\n1,0\n');
  await log.sync();
  expect(folder.metadata).toBe('11\n0,0\n1,14\n');
});

it('a file that was consumed before it was full is passed when the next one begins', async () => {
  const { folder, log } = await opened();
  await put(log, messages(10));
  await drain(log);
  await log.append(messages(1, 10));
  expect(folder.metadata).toBe('0\n1,0\n1,0\n');
});

it('a file is deleted when the metadata on the disk has passed it', async () => {
  const { folder, log } = await opened();
  await put(log, messages(25));
  const all = await readAll(log);
  for (const message of all.slice(0, 10)) log.acknowledge(message);
  expect(folder.data).toEqual(['0', '1', '2']);
  await log.saveAcks(false);
  expect(folder.data).toEqual(['1', '2']);
  expect(folder.metadata).toBe('15\n1,0\n2,70\n');
});

it('an emptied queue continues in a new file', async () => {
  const { folder, log } = await opened();
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
});

it('removing a queue leaves the files that were set aside, and no others', async () => {
  const { folder, log } = await opened();
  await put(log, messages(25));
  folder.write('q.diskqueue.meta.dat.123.tmp', Buffer.alloc(0));
  folder.write('q.diskqueue.000000.dat.bad', Buffer.from('bad'));
  folder.write('q:c.diskqueue.000000.dat', Buffer.from('of another queue'));
  await log.close();
  await log.remove();
  expect(folder.names).toEqual(['q.diskqueue.000000.dat.bad', 'q:c.diskqueue.000000.dat']);
});

const at = (offset: number): DonePrefix['end'] => ({ number: 7, offset });

function done(offset: number, records: number): DonePrefix {
  return { end: at(offset), records };
}

it('a second acknowledgement is refused, also of a message that is forgotten', () => {
  const inFlight = new InFlight();
  const sequences = Array.from({ length: 5000 }, (_, i) => inFlight.add(at(i)));
  for (const sequence of sequences) expect(inFlight.acknowledge(sequence)).toBe(true);
  expect(inFlight.takeDone()).toEqual(done(4999, 5000));
  for (const sequence of sequences) expect(inFlight.acknowledge(sequence)).toBe(false);
  const next = inFlight.add(at(5000));
  expect(next).toBe(sequences.length + 1);
  expect(inFlight.acknowledge(next)).toBe(true);
});

it('damage is passed with the message before it, and counts no record', () => {
  const inFlight = new InFlight();
  inFlight.addDamage(at(5));
  expect(inFlight.takeDone()).toEqual(done(5, 0));
  const a = inFlight.add(at(10));
  inFlight.addDamage(at(20));
  expect(inFlight.takeDone()).toBeUndefined();
  inFlight.acknowledge(a);
  expect(inFlight.takeDone()).toEqual(done(20, 1));
  inFlight.addDamage(at(30));
  expect(inFlight.takeDone()).toEqual(done(30, 0));
});
