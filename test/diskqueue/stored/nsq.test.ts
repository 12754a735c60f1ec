import { expect, it } from 'vitest';
import { NsqLog } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { StoredNsqQueue } from '../../../src/diskqueue/nsq/stored-nsq-queue.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import { readAll, records, texts } from '../nsq/queue-folder.ts';
import { MemoryDisk } from './memory-disk.ts';
import { expectInOrder, repair } from './repaired.ts';

const MESSAGES = Array.from({ length: 12 }, (_, i) => `message ${String(i + 1).padStart(2, '0')}`);
const RECORD = 14;
const META = 'folder/q.diskqueue.meta.dat';
const FILES = ['000000', '000001', '000002'].map((number) => `folder/q.diskqueue.${number}.dat`);

/** Three files of five, five and two messages, as go-diskqueue writes them; so many are consumed. */
function queueOf(consumed = 0): MemoryDisk {
  const bytes = MESSAGES.map((message) => Buffer.from(message));
  const contents = new Map(FILES.map((path, i) => [path, records(bytes.slice(i * 5, i * 5 + 5))]));
  const read = `${Math.floor(consumed / 5)},${(consumed % 5) * RECORD}`;
  contents.set(META, Buffer.from(`${MESSAGES.length - consumed}\n${read}\n2,28\n`));
  return new MemoryDisk(contents);
}

function storedOn(disk: MemoryDisk): StoredNsqQueue {
  return new StoredNsqQueue(disk, 'folder', 'q');
}

async function handedOut(disk: MemoryDisk): Promise<string[]> {
  const damages: CorruptionEvent[] = [];
  const log = await NsqLog.open({
    ...{ files: new MemoryDisk(disk.contents), folder: 'folder', name: 'q', maxBytesPerFile: 70 },
    ...{ maxMessageSize: 1024, isAlwaysDurable: true, onCorruption: (event) => damages.push(event) },
  });
  const messages = texts(await readAll(log));
  expect(damages).toEqual([]);
  return messages;
}

it('an intact queue needs no repair, wherever its read position is', async () => {
  for (let consumed = 0; consumed < MESSAGES.length; consumed++) {
    const disk = queueOf(consumed);
    const before = new Map(disk.contents);
    await expectInOrder(disk, storedOn(disk));
    expect(await handedOut(disk)).toEqual(MESSAGES.slice(consumed));
    expect(await storedOn(disk).summarize()).toMatchObject({
      messages: MESSAGES.length,
      unacknowledged: MESSAGES.length - consumed,
    });
    expect(disk.contents).toEqual(before);
  }
});

it('an examination starts again if a file is removed meanwhile', async () => {
  const disk = queueOf();
  const path = FILES[0] as string;
  const size = disk.size.bind(disk);
  disk.size = (asked) => {
    if (asked === path) disk.contents.delete(path);
    return size(asked);
  };
  expect(await storedOn(disk).summarize()).toMatchObject({ messages: 7, unacknowledged: 7 });
});

it('a listed file that cannot be found is an error, and not a consumed file', async () => {
  const disk = queueOf();
  const list = disk.list.bind(disk);
  disk.contents.delete(FILES[1] as string);
  disk.list = async (folder) => [...(await list(folder)), 'q.diskqueue.000001.dat'];
  await expect(storedOn(disk).summarize()).rejects.toMatchObject({ code: 'ENOENT' });
  const options = { files: disk, folder: 'folder', name: 'q', maxBytesPerFile: 70, maxMessageSize: 1024 };
  const opening = NsqLog.open({ ...options, isAlwaysDurable: true, onCorruption: () => undefined });
  await expect(opening).rejects.toMatchObject({ code: 'ENOENT' });
});

it('messages are listed, and numbered from 1', async () => {
  const listed = [];
  const selection = { isAll: true, from: 6, onDamage: () => undefined };
  for await (const { sequence, isAcknowledged, data } of storedOn(queueOf(7)).messages(selection)) {
    listed.push([sequence, isAcknowledged, Buffer.from(data).toString()]);
  }
  expect(listed).toEqual(MESSAGES.map((text, i) => [i + 1, i < 7, text]).slice(5));
});

it('a repair keeps every message before a damaged length, and all of the other files', async () => {
  for (const [i, path] of FILES.entries()) {
    for (let n = 0; n < (i < 2 ? 5 : 2); n++) {
      const disk = queueOf(2);
      (disk.contents.get(path) as Buffer)[n * RECORD] = 0x80;
      const isConsumed = i === 0 && n < 2;
      const kept = MESSAGES.filter((_, m) => m >= 2 && (isConsumed || m < i * 5 + n || m >= i * 5 + 5));
      const lost = await repair(disk, storedOn(disk));
      expect([path, n, await handedOut(disk)]).toEqual([path, n, kept]);
      expect(lost).toHaveLength(isConsumed ? 0 : 1);
      expect(disk.contents.has(`${path}.damaged`)).toBe(!isConsumed);
      await expectInOrder(disk, storedOn(disk));
    }
  }
});

it('a repair cuts off a torn record, and keeps a copy of the file', async () => {
  const disk = queueOf();
  const path = FILES[2] as string;
  disk.contents.set(path, Buffer.concat([disk.contents.get(path) as Buffer, Buffer.from([0, 0, 0, 10, 65])]));
  expect((await storedOn(disk).verify(() => undefined)).problems).toEqual([]);
  expect(await repair(disk, storedOn(disk))).toEqual([]);
  expect(disk.contents.get(path)).toHaveLength(28);
  expect(await handedOut(disk)).toEqual(MESSAGES);
  await expectInOrder(disk, storedOn(disk));
});

it('a repair that is interrupted has lost no message, and can be repeated', async () => {
  const damaged = queueOf();
  for (const path of FILES.slice(0, 2)) (damaged.contents.get(path) as Buffer)[2 * RECORD] = 0x80;
  const kept = MESSAGES.filter((_, m) => m % 5 < 2);
  for (let changes = 0, isDone = false; !isDone; changes++) {
    const disk = new MemoryDisk(damaged.contents);
    disk.changesLeft = changes;
    isDone = await repair(disk, storedOn(disk)).then(
      () => true,
      () => false,
    );
    disk.changesLeft = Infinity;
    await repair(disk, storedOn(disk));
    expect([changes, await handedOut(disk)]).toEqual([changes, kept]);
    await expectInOrder(disk, storedOn(disk));
  }
});

it('a repair writes metadata that is missing, damaged or wrong', async () => {
  for (const text of [
    undefined,
    '',
    '5\n2,100\n',
    'garbage',
    '-3\n0,0\n2,28\n',
    '12\n0,0\n9,99\n',
    '12\n0,0\n1,70\n',
  ]) {
    const disk = queueOf();
    if (text === undefined) disk.contents.delete(META);
    else disk.contents.set(META, Buffer.from(text));
    await repair(disk, storedOn(disk));
    expect([text, await handedOut(disk)]).toEqual([text, MESSAGES]);
    await expectInOrder(disk, storedOn(disk));
  }
});

it('a report of a queue names damaged metadata', async () => {
  const disk = queueOf();
  disk.contents.set(META, Buffer.from('garbage'));
  const { problems } = await storedOn(disk).verify(() => undefined);
  expect(problems).toMatchObject([{ file: META, reason: 'the metadata is damaged' }]);
});

it('a repair creates an empty file where one is missing, and reports the loss', async () => {
  const disk = queueOf();
  disk.contents.delete(FILES[1] as string);
  expect(await repair(disk, storedOn(disk))).toMatchObject([{ file: FILES[1], messages: undefined }]);
  expect(await handedOut(disk)).toEqual([...MESSAGES.slice(0, 5), ...MESSAGES.slice(10)]);
  await expectInOrder(disk, storedOn(disk));
});

it('a repair removes temporary metadata', async () => {
  const disk = queueOf();
  disk.contents.set(`${META}.42.tmp`, Buffer.from('1'));
  await repair(disk, storedOn(disk));
  expect([...disk.contents.keys()].filter((path) => path.endsWith('.tmp'))).toEqual([]);
  await expectInOrder(disk, storedOn(disk));
});
