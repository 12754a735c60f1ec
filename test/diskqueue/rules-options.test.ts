import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DiskQueue } from 'escapement/diskqueue';
import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { listQueues } from '../../src/diskqueue/stored/list-queues.ts';
import { hostFileSystem } from '../../src/log/file-system.ts';
import { RANGE, TYPE, VALUE } from '../core/refused.ts';
import { bytes, drain, FORMATS, openQueue, rejection, temporaryFolder, test } from './support/queues.ts';

const WRONG: [option: string, value: unknown, kind: typeof RANGE][] = [
  ...[undefined, null, 5, {}, ['a']].map((value) => ['name', value, TYPE] as never),
  ...['', '.', '..', 'a/b', '/a', 'a\\b', 'a\0b', 'x'.repeat(151), 'ß'.repeat(76), 'a\ud800b'].map(
    (value) => ['name', value, VALUE] as never,
  ),
  ...[undefined, null, 5, ''].map((value) => ['dataPath', value, TYPE] as never),
  ['dataPath', 'a\0b', VALUE],
  ...[0, -1, 1.5, NaN, Infinity, 2 ** 53].map((value) => ['maxBytesPerFile', value, RANGE] as never),
  ...[-1, 0.5, NaN, Infinity].map((value) => ['minMessageSize', value, RANGE] as never),
  ...[-1, 0.5, NaN, Infinity, 2 ** 31].map((value) => ['maxMessageSize', value, RANGE] as never),
  ...[0, -1, 0.5, NaN, Infinity].map((value) => ['syncEvery', value, RANGE] as never),
  ...[0, -1, 0.5, NaN, Infinity].map((value) => ['syncTimeoutMs', value, RANGE] as never),
  ...[0, -1, 0.5, NaN, -Infinity].map((value) => ['maxBytesTotal', value, RANGE] as never),
  ...['maxBytesPerFile', 'minMessageSize', 'maxMessageSize'].map((option) => [option, '300', TYPE] as never),
  ...['syncEvery', 'syncTimeoutMs', 'maxBytesTotal'].map((option) => [option, '300', TYPE] as never),
  ...[null, 'never', 5, ''].map((value) => ['durability', value, VALUE] as never),
  ...[null, 'block', true].map((value) => ['whenFull', value, VALUE] as never),
  ...[null, 'json'].map((value) => ['format', value, VALUE] as never),
  ...[null, 'warn', {}].map((value) => ['onCorruption', value, TYPE] as never),
  ...[null, {}, Date].map((value) => ['clock', value, TYPE] as never),
  ...[null, {}, console].map((value) => ['metrics', value, TYPE] as never),
];

test.each(WRONG)('the option %s: %j is refused, and nothing is created', async (option, value, kind) => {
  const dataPath = join(temporaryFolder(), 'sub');
  const options = { name: 'spool', dataPath, [option]: value };
  const error = await rejection(DiskQueue.open(options));
  expect(error).toMatchObject(kind);
  expect((error as Error).message).toContain(`options.${option} `);
  expect(existsSync(dataPath)).toBe(false);
});

test('minMessageSize > maxMessageSize is refused', async () => {
  const error = await rejection(openQueue({ minMessageSize: 6, maxMessageSize: 5 }));
  expect(error).toMatchObject(RANGE);
  expect((error as Error).message).toMatch(/maxMessageSize.*6.*5/);
});

test.each([undefined, null, 'spool'])('options that are not an object are refused: %j', async (options) => {
  expect(await rejection(DiskQueue.open(options as never))).toMatchObject(TYPE);
});

test.each([[], [{ name: 'spool', dataPath: 'x' }]])('new DiskQueue(%j) throws, and names open', (...args) => {
  const Constructor = DiskQueue as unknown as new (...args: unknown[]) => DiskQueue;
  expect(() => new Constructor(...args)).toThrow(
    expect.objectContaining({
      name: 'TypeError',
      code: 'ERR_ILLEGAL_CONSTRUCTOR',
      message: 'DiskQueue has no public constructor. Use await DiskQueue.open({ … })',
    }),
  );
});

describe.each(FORMATS)('%s', (format) => {
  test.each([1, 13, 100, 255])('files may be of %d bytes', async (maxBytesPerFile) => {
    const dataPath = temporaryFolder();
    const texts = Array.from({ length: 30 }, (_, i) => `message ${i}`);
    const queue = await openQueue({ format, dataPath, maxBytesPerFile });
    for (const message of texts.slice(0, 20)) await queue.put(bytes(message));
    expect(await drain(queue, 7)).toEqual(texts.slice(0, 7));
    await queue.close();
    const again = await openQueue({ format, dataPath, maxBytesPerFile });
    for (const message of texts.slice(20)) await again.put(bytes(message));
    expect(await drain(again)).toEqual(texts.slice(7));
    await again.close();
  });

  test('the queue has the name of its option', async () => {
    expect((await openQueue({ format, name: 'a.b c%d' })).name).toBe('a.b c%d');
  });

  test('the folder and its parents are created, and only the owner can read the files', async () => {
    const dataPath = join(temporaryFolder(), 'a', 'b %s');
    const queue = await openQueue({ format, dataPath });
    await queue.put(bytes('a'));
    const files = readdirSync(dataPath).filter((name) => !name.endsWith('.lock'));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(statSync(join(dataPath, file)).mode & 0o777).toBe(0o600);
  });

  test('a relative folder stays the same when the process changes its working directory', async () => {
    const [here, there] = [temporaryFolder(), temporaryFolder()];
    const before = process.cwd();
    try {
      process.chdir(here);
      const queue = await openQueue({ format, dataPath: 'data' });
      await queue.put(bytes('a'));
      process.chdir(there);
      await drain(queue);
      await queue.flush();
      await queue.delete();
      expect([readdirSync(join(here, 'data')), readdirSync(there)]).toEqual([[], []]);
    } finally {
      process.chdir(before);
    }
  });

  test('open rejects with ERR_QUEUE_IO and the cause if dataPath is a file', async () => {
    const dataPath = join(temporaryFolder(), 'file');
    writeFileSync(dataPath, '');
    for (const path of [dataPath, join(dataPath, 'below')]) {
      expect(await rejection(openQueue({ format, dataPath: path }))).toMatchObject({
        ...{ name: 'EscapementError', code: 'ERR_QUEUE_IO', op: 'DiskQueue.open' },
        cause: { code: expect.stringMatching(/EEXIST|ENOTDIR/) as string },
      });
    }
  });

  test('queues whose names look like files of one another do not touch each other', async ({ dataPath }) => {
    mkdirSync(join(dataPath, 'spool.0000000009.segment.d'));
    writeFileSync(join(dataPath, `a.${'9'.repeat(20)}.segment`), ''); // not a number that we count to
    const names = ['a', 'a.cursor', 'a.0000000001.segment', 'a.lock', 'a.', 'a.b', '-', '~', '%'];
    const queues = await Promise.all(names.map((name) => openQueue({ format, dataPath, name })));
    for (const queue of queues) await queue.put(bytes(queue.name));
    for (const queue of queues) await queue.close();
    for (const name of names)
      expect(await drain(await openQueue({ format, dataPath, name }))).toEqual([name]);
  });
});

test.each([
  ['checked', 'nsq'],
  ['nsq', 'checked'],
] as const)(
  'a queue with files in format %s is not opened as %s, and nothing changes',
  async (format, other) => {
    const dataPath = temporaryFolder();
    const queue = await openQueue({ format, dataPath });
    await queue.put(bytes('a'));
    await queue.close();
    const files = readdirSync(dataPath);
    const error = await rejection(openQueue({ format: other, dataPath }));
    expect(error).toMatchObject(VALUE);
    expect((error as Error).message).toMatch(`options.format must be '${format}'`);
    expect(readdirSync(dataPath)).toEqual(files);
    await openQueue({ format: other, dataPath, name: 'spool.2' });
    expect(await drain(await openQueue({ format, dataPath }))).toEqual(['a']);
  },
);

test('a queue and a broker whose files have the same names refuse the folder of the other, and nothing changes', async () => {
  const dataPath = temporaryFolder();
  const contents = (): unknown[] =>
    readdirSync(dataPath).map((name) => [name, readFileSync(join(dataPath, name), 'latin1')]);
  const refuse = async (opening: Promise<unknown>, message: string): Promise<void> => {
    const before = contents();
    const error = await rejection(opening);
    expect(error).toMatchObject(VALUE);
    expect((error as Error).message).toContain(message);
    expect(contents()).toEqual(before);
  };

  const broker = await EmbeddedBroker.open({ dataPath });
  await new Client({ broker }).enqueue(new Task('work'));
  await broker.close();
  const another = 'options.name must be another name: the files of that name';
  await refuse(openQueue({ dataPath, name: 'tasks' }), another);
  const [stored] = await listQueues(hostFileSystem, dataPath);
  await expect(stored?.verify(() => undefined)).rejects.toThrow('records of type 16, not 1');

  rmSync(dataPath, { recursive: true });
  const queue = await openQueue({ dataPath, name: 'tasks' });
  await queue.put(bytes('a'));
  await queue.close();
  await refuse(EmbeddedBroker.open({ dataPath }), 'must be a folder without a disk queue');
  expect(await drain(await openQueue({ dataPath, name: 'tasks' }))).toEqual(['a']);
});
