import { expect, it } from 'vitest';
import type { StoredMessage } from '../../../src/diskqueue/message-log.ts';
import { drain, expectWhole, messages, put, QueueFolder, records, texts, opened } from './queue-folder.ts';

/* What is no loss: neither what go-diskqueue takes for one, nor a crash. */

it('a file that was consumed before it was full is removed, and not set aside as .bad', async () => {
  for (const size of [140, 145]) {
    const { folder, log, damages } = await opened({ maxBytesPerFile: size });
    for (const message of messages(33)) {
      await put(log, [message]);
      await drain(log);
    }
    await log.close();
    expect(damages).toEqual([]);
    expect(folder.data).toEqual(['3']);
  }
});

it('a consumed end of a file that go-diskqueue has saved is not damage', async () => {
  const folder = QueueFolder.of({ 0: records(messages(9)) }, '0\n0,126\n1,0\n');
  await expectWhole(folder, []);
  expect(folder.data).toEqual(['1']);
});

it('a message longer than maxMessageSize of today is delivered', async () => {
  const { folder, log } = await opened({ maxBytesPerFile: 10_000, maxMessageSize: 5000 });
  await put(log, [Buffer.alloc(5000, 'x'), ...messages(2)]);
  await log.close();
  const again = await folder.open({ maxMessageSize: 1 });
  expect(await drain(again.log)).toEqual(['x'.repeat(5000), ...texts(messages(2))]);
  expect(again.damages).toEqual([]);
  await again.log.close();
  expect(folder.data).toEqual(['0']);
});

it('a file that another program has created is not written over', async () => {
  const { folder, log } = await opened();
  await put(log, messages(10));
  folder.write(folder.file(1), Buffer.from('not ours'));
  await put(log, messages(1, 10));
  expect(folder.data).toEqual(['0', '1', '2']);
  expect(folder.read(folder.file(1)).toString()).toBe('not ours');
});

it('behind a file with the largest number no message is accepted, because it would not be found again', async () => {
  const folder = QueueFolder.of({ 999_999_999_999_999: records(messages(2)) });
  const { log } = await folder.open();
  const [first] = await log.read();
  log.acknowledge(first as StoredMessage);
  expect(await log.append(messages(1, 2))).toMatchObject({ appended: 0, error: { code: 'ERR_QUEUE_IO' } });
  await log.close();
  const again = await folder.open();
  expect(await drain(again.log)).toEqual(['message001']);
});

it('the number of a file that was set aside is not used again', async () => {
  const folder = new QueueFolder();
  folder.write(`${folder.file(4)}.bad`, Buffer.from('bad'));
  const { log } = await folder.open();
  await put(log, messages(1));
  expect(folder.data).toEqual(['4.bad', '5']);
});

it('files that a crash between the save of the metadata and their removal has left are removed by the next save', async () => {
  const folder = new QueueFolder();
  for (const i of [0, 1, 2]) folder.write(folder.file(i), records(messages(10, i * 10)));
  folder.metadata = '5\n2,70\n2,140\n';
  const { log } = await folder.open();
  expect(log.hasUnsavedAcks).toBe(true);
  await log.saveAcks(false);
  expect(folder.data).toEqual(['2']);
  expect(await drain(log)).toEqual(texts(messages(5, 25)));
});

it('messages that were emptied stay dropped after a crash before their files are deleted', async () => {
  const folder = QueueFolder.of({ 0: records(messages(10)) }, '0\n1,0\n1,0\n');
  await expectWhole(folder, []);
  expect(folder.data).toEqual(['1']);
});

it('a crash after empty and put loses no message', async () => {
  const { folder, log } = await opened({ isAlwaysDurable: false });
  await put(log, messages(15));
  await log.empty();
  await log.append(messages(3, 15));
  const copy = folder.killed();
  await log.close();
  await expectWhole(copy, texts(messages(3, 15)));
});
