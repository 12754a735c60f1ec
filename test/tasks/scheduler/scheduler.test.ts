import { EscapementError } from 'escapement';
import { Client, Scheduler, Server, Task, type Broker } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { silentLogger } from '../../../src/tasks/reporting.ts';
import { raise } from '../support/bench.ts';
import { withMethods } from '../support/with-methods.ts';
import { DAY_MS, HOUR_MS, it, MINUTE_MS, START_MS, taskValidatedBy, valid } from './scheduler-world.ts';

const PAGE = { page: 1, size: 1_000 };
const at = (hours: number): Date => new Date(START_MS + hours * HOUR_MS);

describe('a scheduler', () => {
  it('a scheduler enqueues at each tick, but not at the one it is started at', async ({ world }) => {
    const { scheduler, lines } = world.scheduler();
    scheduler.register('*/10 * * * *', new Task('t'));
    scheduler.register('@every 15m', new Task('u'));
    await world.clock.advanceAsync(5 * MINUTE_MS);
    expect(lines).toEqual([]);
    await scheduler.start();
    await world.clock.advanceAsync(25 * MINUTE_MS);
    expect(lines).toEqual([
      '00:10 enqueued 00:10',
      '00:15 enqueued 00:15',
      '00:20 enqueued 00:20',
      '00:30 enqueued 00:30',
      '00:30 enqueued 00:30',
    ]);
  });

  it('the options of an entry override those of its task', async ({ world }) => {
    const { scheduler, infos } = world.scheduler();
    const task = new Task('mail', { to: 1 }, { queue: 'low', maxRetry: 3, headers: { a: '1', b: '1' } });
    const id = scheduler.register('@hourly', task, { maxRetry: 5, headers: { b: '2' }, processInMs: 90_000 });
    await scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(infos).toMatchObject([
      {
        id: `${id}:${START_MS + HOUR_MS}`,
        type: 'mail',
        queue: 'low',
        state: 'scheduled',
        maxRetry: 5,
        headers: { a: '1', b: '2' },
        nextProcessAt: new Date(START_MS + HOUR_MS + 90_000),
      },
    ]);
    expect(JSON.parse(String(infos[0]?.payload))).toEqual({ to: 1 });
  });

  it('the location of the scheduler applies unless the spec has its own', async ({ world }) => {
    const { scheduler, lines } = world.scheduler({ location: 'Asia/Kolkata' });
    scheduler.register('0 6 * * *', new Task('t'));
    scheduler.register('TZ=Asia/Tokyo 0 11 * * *', new Task('t'));
    await scheduler.start();
    await world.clock.advanceAsync(12 * HOUR_MS);
    expect(lines).toEqual(['00:30 enqueued 00:30', '02:00 enqueued 02:00']);
  });

  it('entries can be registered and unregistered while the scheduler runs', async ({ world }) => {
    const { scheduler, lines } = world.scheduler();
    await scheduler.start();
    const id = scheduler.register('@hourly', new Task('t'));
    await world.clock.advanceAsync(HOUR_MS);
    scheduler.unregister(id);
    expect(world.clock.pendingWakeups).toBe(0);
    await world.clock.advanceAsync(HOUR_MS);
    scheduler.register('@hourly', new Task('t'));
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines).toEqual(['01:00 enqueued 01:00', '03:00 enqueued 03:00']);
  });

  it('a scheduler without ticks arms no timer', async ({ world }) => {
    const { scheduler, lines } = world.scheduler();
    scheduler.register('0 0 30 2 *', new Task('never'));
    await scheduler.start();
    await world.clock.advanceAsync(DAY_MS);
    expect(lines).toEqual([]);
    expect(scheduler.entries()).toMatchObject([{ nextEnqueueAt: undefined, prevEnqueueAt: undefined }]);
  });
});

describe('an entry', () => {
  it('the id of an entry is made from its spec, zone, task and options', ({ world }) => {
    const idOf = (location: string, ...entry: Parameters<Scheduler['register']>): string =>
      world.scheduler({ location }).scheduler.register(...entry);
    const given = { queue: 'q', maxRetry: 3 };
    const base = idOf('UTC', '@hourly', new Task('t', 1, given));
    expect(base).toMatch(/^[\da-f]{32}$/);
    const same = [
      idOf('UTC', '@hourly', new Task('t', 1), { maxRetry: 3, queue: 'q' }),
      idOf('UTC', ' @hourly ', new Task('t', 1, { queue: 'x' }), given),
      idOf('UTC', '@hourly', new Task('t', 1, given), { backfill: true }),
    ];
    expect(new Set(same)).toEqual(new Set([base]));
    const inOrder = { headers: { a: '1', b: '2' }, deadline: START_MS };
    const reversed = { deadline: new Date(START_MS), headers: { b: '2', a: '1' } };
    const inAnyOrder = [inOrder, reversed].map((options) =>
      idOf('UTC', '@hourly', new Task('t', 1), options),
    );
    expect(new Set(inAnyOrder).size).toBe(1);
    const others = [
      idOf('Asia/Tokyo', '@hourly', new Task('t', 1, given)),
      idOf('UTC', '0 * * * *', new Task('t', 1, given)),
      idOf('UTC', '@hourly', new Task('u', 1, given)),
      idOf('UTC', '@hourly', new Task('t', 2, given)),
      idOf('UTC', '@hourly', new Task('t', undefined, given)),
      idOf('UTC', '@hourly', new Task('t', new Uint8Array(0), given)),
      idOf('UTC', '@hourly', new Task('t', 1, { queue: 'q', maxRetry: 4 })),
      idOf('UTC', '@hourly', new Task('t', 1, { ...given, headers: { a: 'b' } })),
    ];
    expect(new Set([base, ...others]).size).toBe(others.length + 1);
  });

  it('an entry can be registered with an id', ({ world }) => {
    const { scheduler } = world.scheduler();
    expect(scheduler.register('@hourly', new Task('t'), { id: 'report' })).toBe('report');
    expect(scheduler.has('report')).toBe(true);
  });

  it('a duplicate entry or an unknown id throws ERR_SCHEDULE_ENTRY', ({ world }) => {
    const { scheduler } = world.scheduler();
    const id = scheduler.register('@hourly', new Task('t'));
    const entryError = expect.objectContaining({ code: 'ERR_SCHEDULE_ENTRY' }) as unknown;
    expect(() => scheduler.register('@hourly', new Task('t'))).toThrow(entryError);
    expect(() => scheduler.register('@daily', new Task('t'), { id })).toThrow(entryError);
    expect(scheduler.unregister.bind(scheduler, 'other')).toThrow(entryError);
    scheduler.unregister(id);
    expect(scheduler.unregister.bind(scheduler, id)).toThrow(entryError);
    expect(scheduler.register('@hourly', new Task('t'))).toBe(id);
  });

  it('register throws for wrong arguments', ({ world }) => {
    const { scheduler } = world.scheduler();
    const task = new Task('t', 1, { group: 'g' });
    expect(() => scheduler.register('61 * * * *', task)).toThrow('minute');
    expect(() => scheduler.register('@daily', 't' as unknown as Task)).toThrow('task must be a Task');
    for (const [options, message] of [
      [{ id: ' ' }, 'options.id'],
      [{ queue: '' }, 'options.queue'],
      [{ uniqueKey: 'k' }, 'options.uniqueTtlMs'],
      [{ priority: 'next' }, 'options.priority'],
      [{ backfill: { maxTicks: 0 } }, 'maxTicks'],
      [{ backfill: { maxAgeMs: -1 } }, 'maxAgeMs'],
    ] as const)
      expect(() => scheduler.register('@daily', task, options)).toThrow(message);
    const unregister = scheduler.unregister.bind(scheduler, Symbol('id') as never);
    expect(unregister).toThrow('id must be a string');
    expect(scheduler.entries()).toEqual([]);
  });

  it('an entry is listed with its ticks, and its history outlives the scheduler', async ({ world }) => {
    const { broker, clock } = world;
    const first = world.scheduler();
    const id = first.scheduler.register('@hourly', new Task('t', 'x'), { queue: 'a)b', timeoutMs: 90_000 });
    const options = ['Queue("a\\x29b")', 'Timeout(1m30s)'];
    const entry = { id, spec: '@hourly', taskType: 't', options };
    const none = { nextEnqueueAt: undefined, prevEnqueueAt: undefined };
    expect(first.scheduler.entries()).toMatchObject([{ ...entry, ...none }]);
    expect(await broker.scheduleEntries()).toEqual([]);
    await first.scheduler.start();
    await clock.advanceAsync(2 * HOUR_MS);
    const moments = { nextEnqueueAtMs: at(3).getTime(), prevEnqueueAtMs: at(2).getTime() };
    expect(await broker.scheduleEntries()).toMatchObject([{ ...entry, ...moments }]);
    const times = { nextEnqueueAt: at(3), prevEnqueueAt: at(2) };
    expect(first.scheduler.entries()).toMatchObject([{ ...entry, ...times }]);
    await first.scheduler.shutdown();
    expect(first.scheduler.entries()).toEqual([]);
    expect(await broker.scheduleEntries()).toEqual([]);

    const second = world.scheduler();
    second.scheduler.register('@hourly', new Task('t', 'x'), { queue: 'a)b', timeoutMs: 90_000 });
    await second.scheduler.start();
    await clock.advanceAsync(HOUR_MS);
    const atMs = [3, 2, 1].map((hour) => at(hour).getTime());
    expect(await broker.enqueueEvents(id, PAGE)).toEqual(
      atMs.map((ms) => ({ taskId: `${id}:${ms}`, atMs: ms })),
    );
  });
});

it('preEnqueue and postEnqueue are called for each tick with its outcome', async ({ world }) => {
  const calls: unknown[] = [];
  const options = {
    preEnqueue: (task: Task, given: object, tick: object): unknown =>
      calls.push(['pre', task.type, given, tick]),
    postEnqueue: (info: unknown, error: unknown): unknown => calls.push(['post', info !== undefined, error]),
    enqueueErrorHandler: (task: Task, _: unknown, error: unknown): unknown =>
      calls.push(['error', task.type, error]),
  };
  const { scheduler } = world.scheduler(options);
  // An id of its own: while its first task is there, the second one is refused.
  const entryId = scheduler.register('@hourly', new Task('t'), { taskId: 'one' });
  await scheduler.start();
  await world.clock.advanceAsync(HOUR_MS);
  const pre = (hour: number): unknown => ['pre', 't', { taskId: 'one' }, { entryId, at: at(hour) }];
  expect(calls).toEqual([pre(1), ['post', true, undefined]]);
  await world.clock.advanceAsync(HOUR_MS);
  const conflict = expect.objectContaining({ code: 'ERR_TASK_ID_CONFLICT' }) as unknown;
  expect(calls.slice(2)).toEqual([pre(2), ['post', false, conflict], ['error', 't', conflict]]);
  await world.broker.change('default', { id: 'one' }, 'delete');
  await world.clock.advanceAsync(HOUR_MS);
  expect(calls.slice(5)).toEqual([pre(3), ['post', true, undefined]]);
});

it('the logger receives the error itself as `err`, whose stack pino prints', async ({ world }) => {
  const logged: unknown[] = [];
  const error = (fields: object): unknown => logged.push(fields);
  const { scheduler } = world.scheduler({ logger: { ...silentLogger, error } });
  const entryId = scheduler.register('@hourly', new Task('t'), { taskId: 'one' });
  await scheduler.start();
  await world.clock.advanceAsync(2 * HOUR_MS);
  expect(logged).toEqual([{ err: expect.any(EscapementError) as EscapementError, entryId }]);
});

it('callbacks that throw or reject are reported and do not stop the scheduler', async ({ world }) => {
  const { scheduler, lines } = world.scheduler({
    preEnqueue: raise(new Error('pre')),
    postEnqueue: () => Promise.reject(new Error('post')),
  });
  const errors: unknown[] = [];
  scheduler.on('error', (error) => errors.push(error));
  scheduler.register('@hourly', new Task('t'));
  await scheduler.start();
  await world.clock.advanceAsync(HOUR_MS);
  expect(lines).toEqual(['01:00 enqueued 01:00']);
  expect(errors).toEqual([new Error('pre'), new Error('post')]);
});

describe('start and shutdown', () => {
  const stateError = { code: 'ERR_SCHEDULER_STATE' };
  const closedError = { ...stateError, message: 'the scheduler was shut down' };

  it('start and shutdown happen once each', async ({ world }) => {
    const { scheduler } = world.scheduler();
    await scheduler.start();
    await expect(scheduler.start()).rejects.toMatchObject({
      ...stateError,
      message: 'the scheduler runs already',
    });
    const closing = scheduler.shutdown();
    expect(scheduler.shutdown()).toBe(closing);
    await closing;
    await expect(scheduler.start()).rejects.toMatchObject(closedError);
    expect(() => scheduler.register('@daily', new Task('t'))).toThrow(expect.objectContaining(stateError));
  });

  it('a shutdown leaves nothing', async ({ world }) => {
    const { scheduler, lines } = await world.startHourly();
    expect(world.clock.pendingWakeups).toBe(1);
    await scheduler[Symbol.asyncDispose]();
    expect(world.clock.pendingWakeups).toBe(0);
    await world.clock.advanceAsync(DAY_MS);
    expect(lines).toEqual([]);
  });

  it('start rejects if the broker does not answer, and can be called again', async ({ world }) => {
    let isDown = true;
    const ping = (): Promise<void> => (isDown ? Promise.reject(new Error('down')) : Promise.resolve());
    const { scheduler, lines } = world.scheduler({ broker: withMethods(world.broker, { ping }) });
    scheduler.register('@hourly', new Task('t'));
    await expect(scheduler.start()).rejects.toThrow('down');
    isDown = false;
    await scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines).toEqual(['01:00 enqueued 01:00']);
  });

  it('a shutdown ends a start that waits for the broker, whatever that answers', async ({ world }) => {
    const down = new Error('down');
    for (const [ping, error] of [
      [() => Promise.resolve(), closedError],
      [() => Promise.reject(down), down],
    ] as const) {
      const { scheduler } = world.scheduler({ broker: withMethods(world.broker, { ping }) });
      const started = scheduler.start();
      const closed = scheduler.shutdown();
      await expect(started).rejects.toMatchObject(error);
      await closed;
      await expect(scheduler.start()).rejects.toMatchObject(closedError);
    }
  });

  it.for(['registered', 'unregistered', 'unregistered by preEnqueue'])(
    'a shutdown waits for the pending call of an entry that is %s',
    async (what, { world }) => {
      let arrive = (): void => undefined;
      const enqueueTick: Broker['enqueueTick'] = async (task, tick) => {
        await new Promise<void>((resolve) => (arrive = resolve));
        return world.broker.enqueueTick(task, tick);
      };
      const { scheduler, lines, entryId } = await world.startHourly({
        broker: withMethods(world.broker, { enqueueTick }),
        preEnqueue: (_, __, tick) => {
          if (what === 'unregistered by preEnqueue') scheduler.unregister(tick.entryId);
        },
      });
      await world.clock.advanceAsync(HOUR_MS);
      if (what === 'unregistered') scheduler.unregister(entryId);
      let isOver = false;
      const closing = scheduler.shutdown().then(() => (isOver = true));
      await world.clock.advanceAsync(HOUR_MS);
      expect(isOver).toBe(false);
      arrive();
      await closing;
      expect(lines).toEqual(['02:00 enqueued 01:00']);
    },
  );

  it('a schema that hangs stops neither the scheduler nor its shutdown', async ({ world }) => {
    let calls = 0;
    const task = taskValidatedBy((value) => (++calls === 2 ? valid(value) : new Promise(() => undefined)));
    const { scheduler, lines } = await world.startHourly({}, task);
    await world.clock.advanceAsync(3 * HOUR_MS);
    expect(lines).toEqual(['01:02 failed 01:00', '02:00 enqueued 02:00']);
    expect(calls).toBe(3);
    await scheduler.shutdown();
  });

  it('a tick whose schema hangs is tried again at once with backfill', async ({ world }) => {
    let calls = 0;
    const task = taskValidatedBy((value) => (++calls === 2 ? valid(value) : new Promise(() => undefined)));
    const { lines } = await world.startHourly({ backfill: true }, task);
    await world.clock.advanceAsync(1.5 * HOUR_MS);
    expect(lines).toEqual(['01:02 failed 01:00', '01:02 enqueued 01:00']);
  });

  it('a schema that has settled leaves no timer', async ({ world }) => {
    const { entryId: id, scheduler, lines } = await world.startHourly({}, taskValidatedBy(valid));
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines).toEqual(['01:00 enqueued 01:00']);
    scheduler.unregister(id);
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('in one long advance every tick and every delayed task starts at its own time', async ({ world }) => {
    const { clock, broker } = world;
    const [TICKS, DELAYED] = [300, 40];
    const started: string[] = [];
    await using server = new Server({ broker, concurrency: 4 });
    await server.start(({ type }) => void started.push(`${type} at ${clock.wallNow() - START_MS}`));
    const { scheduler } = world.scheduler();
    scheduler.register('@every 1s', new Task('tick'));
    await scheduler.start();
    const client = new Client({ broker });
    const expected = Array.from({ length: TICKS }, (_, i) => `tick at ${(i + 1) * 1_000}`);
    for (let i = 0; i < DELAYED; i++) {
      const processInMs = TICKS * 1_000 - i * 20 - 1;
      await client.enqueue(new Task(`delayed ${i}`), { processInMs });
      expected.push(`delayed ${i} at ${processInMs}`);
    }
    await clock.advanceAsync(TICKS * 1_000);
    expect(started.sort()).toEqual(expected.sort());
  });
});
