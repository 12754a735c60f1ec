import { once } from 'node:events';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRequire } from 'node:module';
import { describe, expect } from 'vitest';
import { finished, spawnProgram, startProgram } from '../run-program.ts';
import { bytes, drain, FORMATS, openQueue, rejection, temporaryFolder, test } from './support/queues.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOCKED = { name: 'EscapementError', code: 'ERR_QUEUE_LOCKED', op: 'DiskQueue.open' };

const opening = (dataPath: string, format = 'checked'): string => `
  const options = ${JSON.stringify({ name: 'spool', dataPath, format, syncTimeoutMs: 50 })};
  const say = (line) => { process.stdout.write(line + '\\n'); };
  const tell = (promise) => promise.then(() => say('open'), (error) => say(error.code));`;

/** The same in CommonJS, for programs that start worker threads. */
const required = (dataPath: string): string => `
  const { Worker } = require('node:worker_threads');
  const { DiskQueue } = require('escapement/diskqueue');
  ${opening(dataPath)}`;

test('one of many concurrent opens succeeds', async ({ dataPath }) => {
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => openQueue({ dataPath })));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const message = expect.stringContaining("'spool'") as string;
  for (const result of results)
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ ...LOCKED, message });
});

test('a second open by another spelling of the path, or a symbolic link, is refused', async () => {
  const [dataPath, elsewhere] = [temporaryFolder(), temporaryFolder()];
  await openQueue({ dataPath });
  symlinkSync(dataPath, join(elsewhere, 'link'));
  const roundabout = `${dataPath}/../${dataPath.split('/').at(-1) ?? ''}/.`;
  const link = join(elsewhere, 'link');
  for (const other of [`${dataPath}/`, roundabout, link, relative(process.cwd(), dataPath)]) {
    expect(await rejection(openQueue({ dataPath: other }))).toMatchObject(LOCKED);
  }
});

test('queues with long or non-ASCII names are locked', async ({ dataPath }) => {
  for (const name of ['x'.repeat(150), 'ß'.repeat(75), '待'.repeat(30), 'a b%s;:*']) {
    const queue = await openQueue({ dataPath, name });
    expect(await rejection(openQueue({ dataPath, name }))).toMatchObject(LOCKED);
    await queue.put(bytes('a'));
    await queue.delete();
    expect(readdirSync(dataPath)).toEqual([]);
  }
});

test('a second open by the CommonJS build, beside the ES build or the source, is refused', async () => {
  const dataPath = temporaryFolder();
  const { DiskQueue } = createRequire(`${ROOT}/x.js`)(
    'escapement/diskqueue',
  ) as typeof import('escapement/diskqueue');
  await openQueue({ dataPath });
  expect(await rejection(DiskQueue.open({ name: 'spool', dataPath }))).toMatchObject(LOCKED);
  const { lines } = await startProgram(`
    import { createRequire } from 'node:module';
    import { DiskQueue } from 'escapement/diskqueue';
    ${opening(join(dataPath, 'other'))}
    const queue = await DiskQueue.open(options);
    await tell(createRequire(process.cwd() + '/x.js')('escapement/diskqueue').DiskQueue.open(options));
    await queue.close();`);
  expect(lines).toEqual(['ERR_QUEUE_LOCKED']);
});

test('a second open from another process, or its worker threads, is refused', async ({ dataPath }) => {
  const queue = await openQueue({ dataPath });
  const body = required(dataPath);
  const inWorker = `${body} tell(DiskQueue.open(options));`;
  const source = `${body} tell(DiskQueue.open(options)).then(() => new Worker(${JSON.stringify(inWorker)}, { eval: true }));`;
  const { lines } = await startProgram(source, { type: 'commonjs' });
  expect(lines).toEqual(['ERR_QUEUE_LOCKED', 'ERR_QUEUE_LOCKED']);
  await queue.close();
});

test('a second open from a worker thread, or beside one, is refused', async ({ dataPath }) => {
  const body = required(dataPath);
  const source = `${body}
    const worker = new Worker(${JSON.stringify(`${body} tell(DiskQueue.open(options)); setTimeout(() => {}, 60_000);`)}, { eval: true, stdout: true });
    worker.stdout.once('data', async (line) => {
      say('worker ' + String(line).trim());
      await tell(DiskQueue.open(options));
      await worker.terminate();
      await tell(DiskQueue.open(options));
    });`;
  const { lines } = await startProgram(source, { type: 'commonjs' });
  expect(lines).toEqual(['worker open', 'ERR_QUEUE_LOCKED', 'open']);
});

test('a second open from a worker of a cluster is refused', async ({ dataPath }) => {
  const script = join(temporaryFolder(), 'cluster.cjs'); // workers run a file
  writeFileSync(
    script,
    `const cluster = require('node:cluster');
     const { DiskQueue } = require(${JSON.stringify(join(ROOT, 'dist/diskqueue.cjs'))});
     ${opening(dataPath)}
     if (cluster.isPrimary) {
       const first = cluster.fork();
       first.once('message', () => cluster.fork());
       cluster.on('message', (_, line) => {
         say(line);
         if (line !== 'open') for (const worker of Object.values(cluster.workers)) worker.kill();
       });
     } else DiskQueue.open(options).then(() => process.send('open'), (error) => process.send(error.code));`,
  );
  const starting = `process.argv[1] = ${JSON.stringify(script)}; require(process.argv[1]);`;
  const { lines } = await startProgram(starting, { type: 'commonjs' });
  expect(lines).toEqual(['open', 'ERR_QUEUE_LOCKED']);
});

describe.each(FORMATS)('%s', (format) => {
  test('messages of a killed owner, put or in flight, are delivered', async ({ dataPath }) => {
    for (const round of [1, 2]) {
      const owner = spawnProgram(`
        import { DiskQueue } from 'escapement/diskqueue';
        ${opening(dataPath, format)}
        const queue = await DiskQueue.open(options);
        for (const text of ['a', 'b', 'c']) await queue.put(Buffer.from(text + ${round}));
        const delivery = await queue.receive();
        delivery.ack();
        await queue.receive();
        await queue.flush();
        say('ready');
        setInterval(() => undefined, 60_000);`);
      const ended = finished(owner);
      expect((await once(owner.stdout, 'data')).join('')).toBe('ready\n');
      expect(await rejection(openQueue({ format, dataPath }))).toMatchObject(LOCKED);
      owner.kill('SIGKILL');
      await ended;
    }
    const queue = await openQueue({ format, dataPath });
    expect(await drain(queue)).toEqual(['c1', 'a2', 'b2', 'c2']);
  });

  test('a queue whose owner ended without close can be opened', async ({ dataPath }) => {
    const { lines } = await startProgram(`
      import { DiskQueue } from 'escapement/diskqueue';
      ${opening(dataPath, format)}
      const queue = await DiskQueue.open(options);
      await queue.put(Buffer.from('a'));
      queue.receive().then((delivery) => delivery.ack());
      queue.receive();
      say('ready');`);
    expect(lines).toEqual(['ready']);
    expect((await openQueue({ format, dataPath })).depth).toBe(0);
  });
});
