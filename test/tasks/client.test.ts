import { createHash } from 'node:crypto';
import { type Broker, Client, type ClientMiddleware, type NewTask, Task } from 'escapement/tasks';
import { describe, expect, it, vi } from 'vitest';
import { randomId } from '../../src/tasks/task-identity.ts';
import { runProgram } from '../run-program.ts';
import { codeOf, openBench, START_MS, test } from './support/bench.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('a client', () => {
  test("a client enqueues with asynq's defaults", async ({ client }) => {
    const info = await client.enqueue(new Task('email:send', { userId: 42 }));
    expect(info.id).toMatch(UUID);
    expect(info).toMatchObject({
      ...{ queue: 'default', type: 'email:send', state: 'pending' },
      ...{ maxRetry: 25, retried: 0, lastError: '', timeoutMs: 1_800_000, deadline: undefined },
      ...{ group: undefined, retentionMs: 0, headers: {}, nextProcessAt: new Date(START_MS) },
    });
  });

  test.each([
    [{ deadline: START_MS + 9 }, { timeoutMs: 0, deadline: new Date(START_MS + 9) }],
    [{ timeoutMs: 7 }, { timeoutMs: 7, deadline: undefined }],
    [
      { timeoutMs: 7, deadline: new Date(START_MS) },
      { timeoutMs: 7, deadline: new Date(START_MS) },
    ],
    [{ timeoutMs: 0 }, { timeoutMs: 0, deadline: undefined }],
    [{ deadline: 0 }, { timeoutMs: 1_800_000, deadline: undefined }], // 0 is no limit
  ])('a client leaves out the default timeout if there is another limit: %j', async (options, expected) => {
    const { client } = await openBench();
    await expect(client.enqueue(new Task('a'), options)).resolves.toMatchObject(expected);
  });

  test.each([
    [{ processInMs: 5 }, 'scheduled', START_MS + 5],
    [{ processAt: new Date(START_MS + 5) }, 'scheduled', START_MS + 5],
    [{ processInMs: 0 }, 'pending', START_MS],
    [{ processAt: START_MS }, 'pending', START_MS],
    [{ processAt: 0 }, 'pending', START_MS],
  ])('a client processes later with %j', async (options, state, atMs) => {
    const { client } = await openBench();
    await expect(client.enqueue(new Task('a', 1, { processInMs: 99 }), options)).resolves.toMatchObject({
      ...{ state, nextProcessAt: new Date(atMs) },
    });
  });

  test.for([
    [{ priority: 'next', processInMs: 5 }, "'normal' where the task is due later"],
    [{ priority: 'next', processAt: START_MS + 5 }, "'normal' where the task is due later"],
    [{ priority: 'next', group: 'g' }, "'normal' where there is options.group"],
    [{ uniqueKey: 'k' }, 'used with options.uniqueTtlMs'],
    [{ onDuplicate: 'replace' }, 'used with options.uniqueTtlMs'],
    [{ onDuplicate: 'extend' }, 'used with options.uniqueTtlMs'],
  ] as const)(
    'a client rejects options that contradict each other, one task of many alone: %j',
    async ([options, why], { client }) => {
      await expect(client.enqueue(new Task('a'), options)).rejects.toThrow(why);
      const [first, second] = await client.enqueueMany([new Task('a', 1, options), new Task('b')]);
      expect(first).toMatchObject({ status: 'rejected', reason: { code: 'ERR_INVALID_ARG_VALUE' } });
      expect(second).toMatchObject({ status: 'fulfilled', value: { type: 'b' } });
    },
  );

  test('options that repeat a default, or a time that is now, are accepted', async ({ client }) => {
    const now = { priority: 'next', processAt: START_MS } as const;
    const defaults = { priority: 'normal', group: 'g', onDuplicate: 'reject' } as const;
    expect(await client.enqueue(new Task('a'), now)).toMatchObject({ state: 'pending' });
    expect(await client.enqueue(new Task('a'), defaults)).toMatchObject({ state: 'aggregating' });
  });

  test('headers of a caller are copied, and those of a task stay if enqueue has other options', async ({
    client,
  }) => {
    const headers = { a: '1' };
    const given = await client.enqueue(new Task('a'), { headers });
    headers.a = '2';
    expect(given.headers).toEqual({ a: '1' });
    const own = await client.enqueue(new Task('a', 1, { headers: { b: '1' } }), { maxRetry: 3 });
    expect(own).toMatchObject({ maxRetry: 3, headers: { b: '1' } });
  });

  test('a client puts a task into its group', async ({ client }) => {
    const info = await client.enqueue(new Task('a', 1, { group: 'g' }));
    expect(info).toMatchObject({ state: 'aggregating', group: 'g', nextProcessAt: undefined });
  });

  test.each([[undefined], [{}], ['a'], [{ type: 'a', payload: new Uint8Array() }]])(
    'a client rejects the task %j',
    async (task) => {
      const { client } = await openBench();
      await expect(client.enqueue(task as Task)).rejects.toThrow(TypeError);
    },
  );

  test('a client rejects invalid options and brokers', async ({ client }) => {
    await expect(client.enqueue(new Task('a'), { maxRetry: -1 })).rejects.toThrow(RangeError);
    await expect(client.enqueue(new Task('a'), null as never)).rejects.toThrow(TypeError);
    expect(() => new Client({ broker: {} as Broker })).toThrow(TypeError);
    expect(() => new Client(undefined as never)).toThrow(TypeError);
  });

  test.each([
    [{ headers: new Map([['a', 'b']]) as never }, 'options.headers must be an object such as'],
    [{ headers: [['a', 'b']] as never }, 'options.headers must be an object such as'],
    [{ processInMs: 8.64e15 }, 'options.processInMs must be a delay that ends before'],
  ])('a client names the option that is wrong: %j', async (options, message) => {
    const { client } = await openBench();
    await expect(client.enqueue(new Task('a'), options)).rejects.toThrow(message);
  });
});

describe('unique tasks', () => {
  const KEY = 'asynq:{default}:unique:t:';

  test.each([
    [Uint8Array.of(1, 2), `${KEY}0cb988d042a7f28dd5fe2b55b3f5ac7a`],
    [new Uint8Array(0), `${KEY}d41d8cd98f00b204e9800998ecf8427e`],
    [undefined, KEY],
    [{ user_id: 42 }, `${KEY}1181f89307fa271072c095747d5813cc`],
  ])("unique tasks have asynq's key: of the payload %j", async (payload, key) => {
    const { broker, client } = await openBench();
    const enqueue = vi.spyOn(broker, 'enqueue');
    await client.enqueue(new Task('t', payload, { uniqueTtlMs: 1_000 }));
    expect(enqueue.mock.lastCall?.[0]).toMatchObject({ uniqueTtlMs: 1_000, message: { uniqueKey: key } });
  });

  test('tasks without uniqueTtlMs have no unique key', async ({ broker, client }) => {
    const enqueue = vi.spyOn(broker, 'enqueue');
    await client.enqueue(new Task('t'));
    expect(enqueue.mock.lastCall?.[0]).toMatchObject({ uniqueTtlMs: 0, message: { uniqueKey: '' } });
  });

  test('tasks with one unique key are duplicates, whatever their types and payloads are', async () => {
    const { broker, client } = await openBench();
    const enqueue = vi.spyOn(broker, 'enqueue');
    const once = { uniqueTtlMs: 1_000, uniqueKey: 'account-42' };
    await client.enqueue(new Task('a', 1, once));
    const key = 'asynq:{default}:unique::' + createHash('md5').update('account-42').digest('hex');
    expect(enqueue.mock.lastCall?.[0].message.uniqueKey).toBe(key);
    expect(await codeOf(client.enqueue(new Task('b', 2, once)))).toBe('ERR_TASK_DUPLICATE');
    await client.enqueue(new Task('a', 1, { ...once, queue: 'other' }));
    await client.enqueue(new Task('a', 1, { ...once, uniqueKey: 'account-43' }));
    await client.enqueue(new Task('a', 1, { uniqueTtlMs: 1_000 }));
  });

  test('a task that replaces a waiting one returns the info of that one', async ({ client }) => {
    const options = { uniqueTtlMs: 60_000, uniqueKey: 'report', processInMs: 5_000 };
    const first = await client.enqueue(new Task('report', { rows: 1 }, options));
    const report = new Task('report', { rows: 2 }, options);
    const again = await client.enqueue(report, { onDuplicate: 'extend' });
    expect(again).toMatchObject({ id: first.id, state: 'scheduled' });
    expect(again.json()).toEqual({ rows: 2 });
  });
});

describe('enqueueMany', () => {
  test('options of enqueueMany override those of a task, and those of an entry override them', async () => {
    const { client } = await openBench();
    const outcomes = await client.enqueueMany(
      [
        new Task('a', 1, { queue: 'own', maxRetry: 1 }),
        { task: new Task('b'), options: { queue: 'entry' } },
        { task: new Task('c'), options: null as never },
        { task: new Task('d'), options: { retries: 3 } as never },
        { task: new Task('e'), maxRetry: 3 } as never,
      ],
      { queue: 'all' },
    );
    const queues = outcomes.map((one) => (one.status === 'fulfilled' ? one.value.queue : 'refused'));
    expect(queues).toEqual(['all', 'entry', 'refused', 'refused', 'refused']);
    expect(outcomes[0]).toMatchObject({ value: { maxRetry: 1 } });
    expect(await codeOf(client.enqueueMany([], { queue: 1 as never }))).toBe('ERR_INVALID_ARG_TYPE');
  });

  test('enqueueMany calls the broker once, and returns the outcome of each task', async () => {
    const { broker, client } = await openBench();
    const enqueueMany = vi.spyOn(broker, 'enqueueMany');
    const outcomes = await client.enqueueMany([
      new Task('a', 1, { taskId: '1' }),
      { task: new Task('b'), options: { queue: 'low', headers: { a: 'b' } } },
      undefined as unknown as Task,
      new Task('a', 1, { taskId: '1' }),
      { task: new Task('c'), options: { maxRetry: -1 } },
      { task: new Task('d') },
    ]);
    expect(outcomes).toMatchObject([
      { status: 'fulfilled', value: { id: '1', type: 'a', queue: 'default' } },
      { status: 'fulfilled', value: { type: 'b', queue: 'low', headers: { a: 'b' } } },
      { status: 'rejected', reason: { code: 'ERR_INVALID_ARG_TYPE' } },
      { status: 'rejected', reason: { code: 'ERR_TASK_ID_CONFLICT' } },
      { status: 'rejected', reason: { code: 'ERR_OUT_OF_RANGE' } },
      { status: 'fulfilled', value: { type: 'd' } },
    ]);
    expect(enqueueMany).toHaveBeenCalledTimes(1);
  });

  test('enqueueMany without tasks does not call the broker', async ({ broker, client }) => {
    const enqueueMany = vi.spyOn(broker, 'enqueueMany');
    await expect(client.enqueueMany([])).resolves.toEqual([]);
    expect(enqueueMany).not.toHaveBeenCalled();
    await expect(client.enqueueMany(new Task('a') as never)).rejects.toThrow(TypeError);
  });

  test('enqueueMany resolves with the error for each task if the broker rejects the call', async () => {
    const { broker, client } = await openBench();
    await broker.close();
    const closed = { status: 'rejected', reason: { code: 'ERR_BROKER_CLOSED' } };
    const [first, wrong, last] = await client.enqueueMany([new Task('a'), {} as Task, new Task('b')]);
    expect([first, last]).toMatchObject([closed, closed]);
    expect(wrong).toMatchObject({ reason: { code: 'ERR_INVALID_ARG_TYPE' } });
  });

  test('a task of enqueueMany that is due too late rejects alone', async ({ client }) => {
    const late = new Task('late', 1, { processInMs: 8.64e15 });
    expect(await client.enqueueMany([late, new Task('a')])).toMatchObject([
      { status: 'rejected', reason: { code: 'ERR_OUT_OF_RANGE' } },
      { status: 'fulfilled' },
    ]);
  });

  test('the processing time of an entry overrides that of enqueueMany', async ({ client }) => {
    const entry = { task: new Task('a'), options: { processInMs: 5_000 } };
    const [outcome] = await client.enqueueMany([entry], { processAt: START_MS + 90_000 });
    expect(outcome).toMatchObject({ value: { nextProcessAt: new Date(START_MS + 5_000) } });
  });
});

describe('middleware', () => {
  test('middleware wraps the call of the broker, the first one outermost, for one task and for many', async () => {
    const { client } = await openBench();
    const told: string[] = [];
    const traced =
      (name: string): ClientMiddleware =>
      async (request, next) => {
        told.push(`${name} in`);
        const info = await next(request);
        told.push(`${name} out ${info.type}`);
        return info;
      };
    client.use(traced('1'), traced('2')).use(traced('3'));
    await client.enqueue(new Task('a'));
    expect(told).toEqual(['1 in', '2 in', '3 in', '3 out a', '2 out a', '1 out a']);
    await client.enqueueMany([new Task('b'), new Task('c')]);
    expect(told.filter((line) => line.startsWith('1 out'))).toEqual(['1 out a', '1 out b', '1 out c']);
  });

  test('middleware may change the request, which is validated again', async ({ client }) => {
    let queue: unknown = 'high';
    client.use((request, next) => next({ ...request, options: { queue: queue as string } }));
    await expect(client.enqueue(new Task('a'))).resolves.toMatchObject({ queue: 'high' });
    queue = 5;
    await expect(client.enqueue(new Task('a'))).rejects.toThrow(TypeError);
    client.use((_, next) => next(undefined as never));
    await expect(client.enqueue(new Task('a'))).rejects.toThrow(TypeError);
  });

  test('middleware may refuse one task of many by throwing or rejecting', async ({ client }) => {
    const types: string[] = [];
    client.use((request, next) => {
      types.push(request.task.type);
      if (request.task.type === 'bad') throw new Error('bad type');
      return next(request);
    });
    await expect(client.enqueue(new Task('bad'))).rejects.toThrow('bad type');
    const tasks = [new Task('bad'), new Task('good'), 5 as never, {} as Task];
    const outcomes = await client.enqueueMany(tasks);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected']);
    expect(types, 'what is not a task reaches no middleware').toEqual(['bad', 'bad', 'good']);
  });

  test('middleware must be a function', ({ client }) => {
    expect(() => client.use('a' as never)).toThrow(TypeError);
  });
});

test('the event enqueued is emitted for every task that was enqueued', async ({ client }) => {
  const told: string[] = [];
  client.on('enqueued', ({ id }) => told.push(id));
  await client.enqueue(new Task('a', 1, { taskId: '1' }));
  await client.enqueue(new Task('a', 1, { taskId: '1' })).catch(() => undefined);
  await client.enqueueMany([new Task('a', 1, { taskId: '2' }), new Task('a', 1, { taskId: '1' })]);
  client.use((request, next) => next(request));
  await client.enqueue(new Task('a', 1, { taskId: '3' }));
  expect(told).toEqual(['1', '2', '3']);
});

test('an error of a listener is uncaught, and the task is enqueued', () => {
  const { stdout } = runProgram(
    `import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
       process.on('uncaughtException', (error) => console.log(error.message));
       const client = new Client({ broker: await EmbeddedBroker.open() });
       client.on('enqueued', () => { throw new Error('from a listener'); });
       console.log((await client.enqueue(new Task('a'))).state);`,
  );
  expect(stdout).toBe('pending\nfrom a listener\n');
});

test('close waits for all pending operations, whether they succeed or fail', async ({ broker, client }) => {
  const enqueue = broker.enqueue.bind(broker);
  const go: (() => void)[] = [];
  vi.spyOn(broker, 'enqueue').mockImplementation(async (task: NewTask) => {
    await new Promise<void>((resolve) => go.push(resolve));
    return enqueue(task);
  });
  const task = new Task('a', 1, { taskId: 'same' });
  const [enqueued, refused] = [client.enqueue(task), client.enqueue(task)];
  await expect(client.enqueue(task, { uniqueKey: 'without a time' })).rejects.toThrow(TypeError);
  const told: string[] = [];
  const closed = client.close().then(() => told.push('closed'));
  const closedAgain = client.close();
  go[0]?.();
  await expect(enqueued).resolves.toMatchObject({ state: 'pending' });
  await Promise.resolve();
  expect(told).toEqual([]);
  go[1]?.();
  expect(await codeOf(refused)).toBe('ERR_TASK_ID_CONFLICT');
  await Promise.all([closed, closedAgain]);
  expect(told).toEqual(['closed']);
});

test('a closed client rejects operations, and its broker is open', async ({ broker, client }) => {
  await client.close();
  const closed = (op: string): object => ({ code: 'ERR_CLIENT_CLOSED', op });
  await expect(client.enqueue(new Task('a'))).rejects.toMatchObject(closed('Client.enqueue'));
  await expect(client.enqueueMany([new Task('a')])).rejects.toMatchObject(closed('Client.enqueueMany'));
  await expect(broker.ping()).resolves.toBeUndefined();
});

/** More than random bytes are fetched for at once. */
const MANY = 1_000;

describe('randomId', () => {
  const ids = Array.from({ length: MANY }, randomId);

  it('randomId returns another UUID of version 4 each time', () => {
    for (const id of ids) expect(id).toMatch(UUID);
    expect(new Set(ids).size).toBe(MANY);
  });

  it('an id of randomId can have each digit at each position', () => {
    for (let place = 0; place < 36; place++) {
      const expected = [8, 13, 18, 23].includes(place) ? 1 : place === 14 ? 1 : place === 19 ? 4 : 16;
      expect(new Set(ids.map((id) => id[place])).size).toBe(expected);
    }
  });
});
