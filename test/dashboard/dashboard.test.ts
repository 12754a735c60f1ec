import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
import {
  defaultControllerRateLimiter,
  DelayedOperationPurgatory,
  ManualClock,
  RateLimitingQueue,
  SystemTimer,
} from 'escapement';
import { dashboard } from 'escapement/dashboard';
import { DiskQueue } from 'escapement/diskqueue';
import { folderOfTest } from '../folder.ts';
import { serveBench, serveBoard } from './serve-dashboard.ts';

describe('the session', () => {
  test('a session has what the page shows and what it may change', async () => {
    const { send } = await serveBench({ title: 'Jobs' });
    const { status, json } = await send('/api/session');
    expect({ status, json }).toMatchObject({
      status: 200,
      json: {
        ...{ title: 'Jobs', source: 'memory' },
        has: { tasks: true, timers: false, purgatories: false, workQueues: false, diskQueues: false },
      },
    });
    expect((json as { actions: string[] }).actions).toContain('delete-queue');
  });
});

describe('queues and tasks', () => {
  test('a queue has its counts, days, groups and limits', async () => {
    const { add, send, write } = await serveBench();
    await add('a');
    await add('b', { group: 'g' });
    const limits = { concurrency: 3, rate: { tasks: 10, perMs: 1_000 } };
    expect(await write('PUT', '/api/queues/default/limits', limits)).toMatchObject({ status: 204 });
    const { json } = await send('/api/queues/default');
    expect(json).toMatchObject({
      queue: { queue: 'default', paused: false, pending: 1, aggregating: 1, hasServer: false },
      limits,
      groups: [{ group: 'g', size: 1 }],
    });
    expect((json as { days: unknown[] }).days).toHaveLength(90);
    expect(await write('DELETE', '/api/queues/default/limits')).toMatchObject({ status: 204 });
    expect((await send('/api/queues/default')).json).not.toHaveProperty('limits');
    expect(await write('POST', '/api/queues/default/pause')).toMatchObject({ status: 204 });
    expect(await write('POST', '/api/queues/default/pause')).toMatchObject({ status: 409 });
    expect(await write('DELETE', '/api/queues/default?force=1')).toMatchObject({ status: 204 });
    const removed = await send('/api/queues/default');
    expect(removed).toMatchObject({ status: 404, json: { code: 'ERR_QUEUE_NOT_FOUND' } });
  });

  test('tasks are listed, shown and changed', async () => {
    const { client, add, send, write } = await serveBench();
    await client.enqueue(new Task('big', Buffer.from('{"id":12345678901234567890}')), { taskId: 'a' });
    await client.enqueue(new Task('raw', Buffer.from([0xff, 0])), { taskId: 'b' });
    await add('g1', { group: 'g' });
    expect((await send('/api/queues/default/tasks?state=pending&size=1&page=2')).json).toMatchObject({
      total: 2,
      tasks: [{ id: 'b', payload: { bytes: 2, base64: '/wA=', isCut: false } }],
    });
    expect((await send('/api/queues/default/tasks?state=aggregating&group=g')).json).toMatchObject({
      total: 1,
      tasks: [{ id: 'g1', group: 'g' }],
    });
    expect((await send('/api/queues/default/tasks/a')).json).toMatchObject({
      payload: { text: '{"id":12345678901234567890}', isCut: false },
      actions: ['delete', 'archive'],
    });
    const deadline = new Date(2_100_000_000_000);
    await add('all', { deadline, key: 'acme', headers: { trace: '1' } });
    expect((await send('/api/queues/default/tasks/all')).json).toMatchObject({
      ...{ key: 'acme', deadlineMs: deadline.getTime() },
      options: [
        { label: 'timeout', kind: 'duration', value: 0 },
        { label: 'deadline', kind: 'time', value: deadline.getTime() },
        { label: 'retention', kind: 'duration', value: 0 },
        { label: 'group', kind: 'text' },
        { label: 'key', kind: 'text', value: 'acme' },
        { label: 'header', kind: 'headers', value: { trace: '1' } },
      ],
    });
    expect(await write('POST', '/api/queues/default/tasks/a/archive')).toMatchObject({ status: 204 });
    expect(await write('POST', '/api/queues/default/tasks/a/cancel')).toMatchObject({ status: 409 });
    const all = { state: 'archived', change: 'run' };
    expect(await write('POST', '/api/queues/default/tasks/change', all)).toMatchObject({
      ...{ status: 200, json: { changed: 1 } },
    });
  });

  test('servers, schedules and health are shown', async () => {
    const { send } = await serveBench();
    expect(await send('/api/servers')).toMatchObject({ status: 200, json: [] });
    expect(await send('/api/schedules')).toMatchObject({ status: 200, json: [] });
    expect(await send('/api/schedules/x/events')).toMatchObject({ status: 200, json: [] });
    expect(await send('/api/health')).toMatchObject({ status: 200, json: { process: { pid: process.pid } } });
    expect(await send('/api/history')).toMatchObject({ status: 200, json: { atMs: [] } });
  });
});

test('timers are shown with their wheels', async () => {
  const timer = new SystemTimer({ clock: new ManualClock(), name: 'requests' });
  timer.schedule(5_000, () => undefined);
  const { send } = await serveBoard({ timers: [timer] });
  expect((await send('/api/runtime')).json).toMatchObject({
    timers: [{ name: 'requests', levels: [{ tickMs: 1 }, { tickMs: 64 }, {}] }],
  });
  expect(await send('/api/servers')).toMatchObject({ status: 404 });
});

test('purgatories, work queues and disk queues are shown, closed ones too', async () => {
  const folder = folderOfTest();
  const purgatory = new DelayedOperationPurgatory<string>('produce', { timerEnabled: false });
  const options = { name: 'pods', clock: new ManualClock() };
  const work = new RateLimitingQueue<string>(defaultControllerRateLimiter(), options);
  const messages = await DiskQueue.open({ name: 'spool', dataPath: folder });
  await messages.put(Buffer.from('a'));
  work.add('web');
  work.addRateLimited('db');
  const { send } = await serveBoard({ purgatories: [purgatory], workQueues: [work], diskQueues: [messages] });
  const shown = {
    purgatories: [{ name: 'produce', watched: 0 }],
    workQueues: [{ name: 'pods', depth: 1, retries: [{ key: 'db', retries: 1 }] }],
    diskQueues: [{ name: 'spool', depth: 1, bytes: 1 }],
  };
  expect((await send('/api/runtime')).json).toMatchObject(shown);
  expect((await send('/api/session')).json).toMatchObject({ has: { tasks: false, diskQueues: true } });
  work.shutDown();
  purgatory.close();
  await messages.close();
  expect(await send('/api/runtime')).toMatchObject({ status: 200 });
});

test('a dashboard with nothing to show is refused', () => {
  expect(() => dashboard({})).toThrow('dashboard: options must have at least one of broker, timers');
  expect(() => dashboard({ timers: [{}] as never })).toThrow('options.timers[0] must be a SystemTimer');
});

test('the version in a session is that of the package', async () => {
  const { send } = await serveBench();
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect((await send('/api/session')).json).toMatchObject({ version: manifest.version });
});

test('a folder is shown with its files', async () => {
  const folder = folderOfTest();
  const broker = await EmbeddedBroker.open({ dataPath: folder });
  onTestFinished(async () => await broker.close());
  await new Client({ broker }).enqueue(new Task('a', { x: 'in a folder' }), { taskId: 'a' });
  const { send, write } = await serveBoard({ broker });
  expect((await send('/api/session')).json).toMatchObject({ source: folder });
  const { json } = await send('/api/health');
  expect(json).toMatchObject({ folder: { path: folder, files: expect.any(Number) as number } });
  expect((json as { folder: { bytes: number } }).folder.bytes).toBeGreaterThan(0);
  expect((await send('/api/search?payload=FOLDER')).text).toContain('"matched":1');
  expect((await write('POST', '/api/queues/default/tasks/a/archive')).status).toBe(204);
});

test('the page is served at the root', async () => {
  const { send } = await serveBench({ rootPath: '/jobs' });
  expect(await send('/jobs')).toMatchObject({ status: 302, headers: { location: './jobs/' } });
  const { status, headers } = await send('/jobs/');
  expect(status).toBe(200);
  expect(headers['content-security-policy']).toContain("script-src 'self'");
});

test('what a page has read is not sent again while it is as it was', async () => {
  const { add, send, write } = await serveBench();
  await add('a');
  const path = '/api/queues/default/tasks/a';
  const first = await send(path);
  const again = { headers: { 'if-none-match': first.headers.etag } };
  expect(await send(path, again)).toMatchObject({
    ...{ status: 304, text: '' },
    headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
  });
  expect((await write('POST', `${path}/archive`)).status).toBe(204);
  expect(await send(path, again)).toMatchObject({ status: 200, json: { state: 'archived' } });
  expect(await send('/api/queues/default/tasks/b', again)).toMatchObject({ status: 404 });
});
