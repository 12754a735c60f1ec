import { EmbeddedBroker, Inspector } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { doEach } from '../../../src/tasks/http/asynqmon-routes.ts';
import { SERVER } from '../../conformance/broker/support.ts';
import { at, START_MS } from '../support/bench.ts';
import { addEveryState } from '../support/every-state.ts';
import { type Send, serveTasks, test } from './serve.ts';

const base = (id: string): object => ({
  ...{ id, type: 'work', payload: `{"id":"${id}"}`, queue: 'default' },
  ...{ max_retry: 25, retried: 0, error_message: '' },
});

/** Where the tasks of a state are, unless they are active. */
const PATHS = {
  pending: 'pending_tasks',
  scheduled: 'scheduled_tasks',
  retry: 'retry_tasks',
  archived: 'archived_tasks',
  completed: 'completed_tasks',
  aggregating: 'groups/g/aggregating_tasks',
};
const STATES = Object.keys(PATHS) as (keyof typeof PATHS)[];
const RUNNABLE = ['scheduled', 'retry', 'archived', 'aggregating'] as const;
const ARCHIVABLE = ['pending', 'scheduled', 'retry', 'aggregating'] as const;

type Change = [method: string, path: string, state: string | undefined];

/** A queue with one task in each state, whose id is that state. */
async function withEveryState(): ReturnType<typeof serveTasks> {
  const served = await serveTasks();
  await addEveryState(served, 1_000);
  served.clock.advance(500);
  return served;
}

async function listed(send: Send, path: string): Promise<unknown> {
  const { json, status } = await send(`/api/queues/default/${path}`);
  expect(status).toBe(200);
  expect(json).toMatchObject({ stats: { queue: 'default', size: 7 } });
  return (json as { tasks: unknown }).tasks;
}

describe('tasks', () => {
  test('tasks are listed by state', async () => {
    const { send } = await withEveryState();
    const retried = expect.any(Number) as number;
    const shown: Record<(typeof STATES)[number], object> = {
      pending: {},
      scheduled: { next_process_at: at(1_000) },
      retry: { retried: 1, error_message: 'boom', next_process_at: at(5_000) },
      archived: { retried, error_message: 'boom', last_failed_at: at(0) },
      completed: { completed_at: at(0), result: 'fine', ttl_seconds: 59 },
      aggregating: { group: 'g' },
    };
    for (const state of STATES)
      expect(await listed(send, PATHS[state])).toEqual([{ ...base(state), ...shown[state] }]);
  });

  test('tasks of a group are listed with all groups of the queue: asynqmon’s page reads them', async () => {
    const { add, send } = await withEveryState();
    await add('b', { group: 'h' });
    const { json } = await send('/api/queues/default/groups/g/aggregating_tasks');
    expect(json).toMatchObject({ tasks: [{ id: 'aggregating', group: 'g' }] });
    const { groups } = json as { groups: { group: string }[] };
    const sorted = groups.toSorted((a, b) => a.group.localeCompare(b.group));
    expect(sorted).toEqual(['g', 'h'].map((group) => ({ group, size: 1 })));
  });

  test('tasks that are active are listed with their runs', async () => {
    const { broker, send } = await withEveryState();
    const unknown = { ...base('active'), start_time: '-', deadline: '-', is_orphaned: false };
    expect(await listed(send, 'active_tasks')).toEqual([unknown]);
    const worker = { taskId: 'active', taskType: 'work', payload: Buffer.from('p'), queue: 'default' };
    const times = { startedAtMs: START_MS, deadlineMs: START_MS + 9_000 };
    const state = { ...SERVER, startedAtMs: START_MS, workers: [{ ...worker, ...times }] };
    await broker.announceServer(() => state, 10_000);
    const known = { ...unknown, start_time: at(0), deadline: at(9_000) };
    expect(await listed(send, 'active_tasks')).toEqual([known]);
    expect((await send('/api/servers')).json).toEqual({
      servers: [
        {
          ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queue_priorities: { default: 1 } },
          ...{ strict_priority_enabled: false, start_time: at(0), status: 'active' },
          active_workers: [
            { task_id: 'active', queue: 'default', task_type: 'work', task_payload: 'p', start_time: at(0) },
          ],
        },
      ],
    });
  });

  test('tasks are shown with all fields', async () => {
    const { add, send } = await withEveryState();
    const none = {
      last_failed_at: '',
      deadline: '',
      group: '',
      key: '',
      next_process_at: '',
      completed_at: '',
    };
    const rest = { ...none, result: '', ttl_seconds: 0, timeout_seconds: 1_800 };
    expect((await send('/api/queues/default/tasks/completed')).json).toEqual({
      ...{ ...base('completed'), ...rest, state: 'completed' },
      ...{ completed_at: at(0), result: 'fine', ttl_seconds: 59 },
    });
    await add('x', { timeoutMs: 1, deadline: START_MS + 9_000, key: 'tenant ä' });
    expect((await send('/api/queues/default/tasks/x')).json).toEqual({
      ...{ ...base('x'), ...rest, state: 'pending' },
      ...{ timeout_seconds: 1, deadline: at(9_000), next_process_at: at(500), key: 'tenant ä' },
    });
    expect(await send('/api/queues/default/tasks/y')).toMatchObject({ status: 404 });
  });

  test('tasks come in pages of twenty', async ({ add, send }) => {
    for (let n = 1; n <= 22; n++) await add(String(n));
    const idsOf = async (query: string): Promise<string[]> => {
      const { json } = await send(`/api/queues/default/pending_tasks${query}`);
      return (json as { tasks: { id: string }[] }).tasks.map(({ id }) => id);
    };
    expect(await idsOf('')).toHaveLength(20);
    expect(await idsOf('?page=2')).toEqual(['21', '22']);
    expect(await idsOf('?page=2&size=3&more=x')).toEqual(['4', '5', '6']);
    expect(await idsOf('?page=&size=')).toHaveLength(20);
  });

  test.each([
    'page=0',
    'page=-1',
    'size=0',
    'size=1001',
    'page=x',
    'page=1e3',
    'page=1.5',
    'size=9999999999999999',
  ])('tasks have no page %s', async (query) => {
    const { send } = await withEveryState();
    expect(await send(`/api/queues/default/pending_tasks?${query}`)).toMatchObject({ status: 400 });
  });

  test.each<Change>([
    ['DELETE', 'scheduled_tasks/scheduled', undefined],
    ['DELETE', 'groups/g/aggregating_tasks/aggregating', undefined],
    ...RUNNABLE.map((state): Change => ['POST', `${PATHS[state]}/${state}:run`, 'pending']),
    ...ARCHIVABLE.map((state): Change => ['POST', `${PATHS[state]}/${state}:archive`, 'archived']),
  ])('tasks are changed one by one: %s %s', async (method, path, state) => {
    const { inspector, send } = await withEveryState();
    const [, id = ''] = /_tasks\/(\w+)/.exec(path) ?? [];
    expect(await send(`/api/queues/default/${path}`, { method })).toMatchObject({ status: 204, text: '' });
    const info = await inspector.getTaskInfo('default', id).catch(() => undefined);
    expect(info?.state).toBe(state);
    const missing = path.replace(`/${id}`, '/missing');
    expect(await send(`/api/queues/default/${missing}`, { method })).toMatchObject({ status: 404 });
  });

  test('tasks that are active cannot be deleted, run or archived', async () => {
    const { send } = await withEveryState();
    for (const [method, path] of [
      ['POST', 'retry_tasks/active:run'],
      ['POST', 'retry_tasks/active:archive'],
      ['DELETE', 'pending_tasks/active'],
    ] as const)
      expect(await send(`/api/queues/default/${path}`, { method })).toMatchObject({ status: 409 });
  });

  test.each([
    ...STATES.map((state) => ['DELETE', `${PATHS[state]}:delete_all`, { deleted: 1 }] as const),
    ...RUNNABLE.map((state) => ['POST', `${PATHS[state]}:run_all`, { scheduled: 1 }] as const),
    ...ARCHIVABLE.map((state) => ['POST', `${PATHS[state]}:archive_all`, { archived: 1 }] as const),
  ])('tasks are changed all at once: %s %s', async (method, path, json) => {
    const { send } = await withEveryState();
    expect(await send(`/api/queues/default/${path}`, { method })).toMatchObject({ status: 200, json });
  });

  test.each([
    ...STATES.map((state) => [`${PATHS[state]}:batch_delete`, state, 'deleted_ids', 'failed_ids'] as const),
    ...RUNNABLE.map((state) => [`${PATHS[state]}:batch_run`, state, 'pending_ids', 'error_ids'] as const),
    ...ARCHIVABLE.map(
      (state) => [`${PATHS[state]}:batch_archive`, state, 'archived_ids', 'error_ids'] as const,
    ),
  ])('tasks are changed by ids: %s', async (path, id, done, failed) => {
    const { send } = await withEveryState();
    const body = { task_ids: ['missing', id, 'active'] };
    expect(await send(`/api/queues/default/${path}`, { method: 'POST', body })).toMatchObject({
      ...{ status: 200, json: { [done]: [id], [failed]: ['missing', 'active'] } },
    });
    const none = await send(`/api/queues/default/${path}`, { method: 'POST', body: { task_ids: [] } });
    expect(none.json).toEqual({ [done]: [], [failed]: [] });
  });

  test('tasks that are active are cancelled: one, several or all', async () => {
    const { broker, send } = await withEveryState();
    const asked: unknown[] = [];
    await broker.subscribe({ cancel: (request) => asked.push(request) > 0 });
    const post = { method: 'POST' };
    const path = '/api/queues/default/active_tasks';
    expect(await send(`${path}/active:cancel`, post)).toMatchObject({ status: 204 });
    expect(await send(`${path}:cancel_all`, post)).toMatchObject({ status: 204 });
    const body = { task_ids: ['active', 'pending', 'missing'] };
    expect(await send(`${path}:batch_cancel`, { ...post, body })).toMatchObject({
      ...{ status: 200, json: { canceled_ids: ['active'], error_ids: ['pending', 'missing'] } },
    });
    expect(asked).toEqual(Array(3).fill({ taskId: 'active', queue: 'default', outcome: 'retry' }));
    expect(await send(`${path}/pending:cancel`, post)).toMatchObject({ status: 409 });
    expect(await send(`${path}/missing:cancel`, post)).toMatchObject({ status: 404 });
  });
});

test('schedulers have their entries and the tasks that they have enqueued', async ({ broker, send }) => {
  expect((await send('/api/scheduler_entries')).json).toEqual({ entries: [] });
  const payload = Buffer.from('p');
  const task = { spec: '@every 1m', taskType: 't', payload, options: ['Queue("q")'] };
  const entry = { ...task, nextEnqueueAtMs: START_MS, prevEnqueueAtMs: 0 };
  const entries = [
    { id: 'a', ...entry },
    { id: 'b', ...entry, prevEnqueueAtMs: START_MS - 5 },
  ];
  await broker.announceScheduler('x', () => entries, 20_000);
  const shown = { spec: '@every 1m', task_type: 't', task_payload: 'p', options: ['Queue("q")'] };
  expect((await send('/api/scheduler_entries')).json).toEqual({
    entries: [
      { id: 'a', ...shown, next_enqueue_at: at(0) },
      { id: 'b', ...shown, next_enqueue_at: at(0), prev_enqueue_at: at(-5) },
    ],
  });
  await broker.recordEnqueueEvent('a', { taskId: '1', atMs: START_MS });
  await broker.recordEnqueueEvent('a', { taskId: '2', atMs: START_MS + 1 });
  expect((await send('/api/scheduler_entries/a/enqueue_events?size=1')).json).toEqual({
    events: [{ task_id: '2', enqueued_at: at(1) }],
  });
  expect((await send('/api/scheduler_entries/c/enqueue_events')).json).toEqual({ events: [] });
});

test('a batch on a broker in the process does not hold the event loop: the host has a turn between two pieces', async () => {
  await using broker = await EmbeddedBroker.open();
  const inspector = new Inspector({ broker });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const ids = Array.from({ length: 5_000 }, (_, i) => `missing ${i}`);
  const outcome = await doEach(ids, (id) => inspector.deleteTask('default', id));
  isOver = true;
  expect(outcome).toEqual({ done: [], failed: ids });
  expect(turns).toBeGreaterThanOrEqual(5_000 / 50);
});
