import { TASK_STATES } from '../../../src/tasks/task-state.ts';
import type { Broker, TaskMessage } from 'escapement/tasks';
import { expect } from 'vitest';
import {
  caseWith,
  catchUp,
  EVERY_BYTE,
  everythingOf,
  expectCode,
  failure,
  idsIn,
  LONG_MS,
  MINUTE_MS,
  newTask,
  putInto,
  QUEUE,
  stateOf,
  take,
  takeAll,
  type BrokerFactory,
  lockKey,
} from './support.ts';

const KEY = 'asynq:{default}:unique:test:task:';

/** What frees the lock of the only task of the queue. */
const FREEING: Record<string, (broker: Broker, message: TaskMessage) => Promise<unknown>> = {
  'it is completed': async (broker) => broker.complete(await take(broker)),
  'it is archived': async (broker) => broker.archive(await take(broker), failure()),
  'it is discarded': async (broker) => broker.discard(await take(broker)),
  'it is deleted': (broker, { queue, id }) => broker.change(queue, { id }, 'delete'),
  'somebody archives it': (broker, { queue, id }) => broker.change(queue, { id }, 'archive'),
  'all are deleted': (broker, { queue }) => broker.change(queue, { state: 'pending' }, 'delete'),
  'all are archived': (broker, { queue }) => broker.change(queue, { state: 'pending' }, 'archive'),
  'its queue is removed': (broker, { queue }) => broker.removeQueue(queue, { force: true }),
};

export function describeWriting(make: BrokerFactory): void {
  const it = caseWith(make);

  it('an enqueued task is pending', async (broker, time) => {
    const task = newTask();
    const record = await broker.enqueue(task);
    expect(record).toMatchObject({ state: 'pending', message: task.message, isOrphaned: false });
    expect(record.result).toBeUndefined();
    expect(record.progress).toBeUndefined();
    const lateMs = Math.abs(record.nextProcessAtMs - broker.clock.wallNow());
    expect(lateMs).toBeLessThanOrEqual(1_000 + time.precisionMs);
    expect((await broker.task(QUEUE, task.message.id)).message).toEqual(task.message);
  });

  it('a task that is enqueued for later is scheduled', async (broker, time) => {
    const processAtMs = broker.clock.wallNow() + LONG_MS;
    const record = await broker.enqueue(newTask({ processAtMs }));
    expect(record.state).toBe('scheduled');
    expect(record.nextProcessAtMs).toBeGreaterThanOrEqual(processAtMs);
    expect(record.nextProcessAtMs).toBeLessThanOrEqual(processAtMs + time.precisionMs);
    expect(await takeAll(broker)).toEqual([]);
  });

  it('a task that is enqueued for a time in the past is pending', async (broker, time) => {
    await time.advance(time.precisionMs);
    const record = await broker.enqueue(newTask({ processAtMs: Math.max(1, broker.clock.wallNow() - 1) }));
    expect(record.state).toBe('pending');
  });

  it('a task that is enqueued into a group is aggregating', async (broker) => {
    const record = await broker.enqueue(newTask({ group: 'g' }));
    expect(record).toMatchObject({ state: 'aggregating', nextProcessAtMs: 0 });
    expect(await takeAll(broker)).toEqual([]);
  });

  it('a task that is enqueued into a group for later is scheduled and keeps its group', async (broker, time) => {
    const record = await broker.enqueue(newTask({ group: 'g', processAtMs: broker.clock.wallNow() + 2_000 }));
    expect(record.state).toBe('scheduled');
    expect(await broker.groups(QUEUE)).toEqual([]);
    await time.pass(2_000);
    await catchUp(broker);
    expect(await stateOf(broker, record.message)).toBe('aggregating');
    expect(await broker.groups(QUEUE)).toEqual([{ group: 'g', size: 1 }]);
  });

  it('a message is dequeued as it was enqueued', async (broker) => {
    const task = newTask({
      ...{ id: 'ид/1', type: 'тип: "x"', queue: 'очередь', payload: EVERY_BYTE, maxRetry: 0 },
      ...{ timeoutMs: 3_000, deadlineMs: 4_102_444_800_000, retentionMs: 5_000 },
      ...{ uniqueKey: lockKey('key', 'очередь'), uniqueTtlMs: LONG_MS },
      headers: { trace: 'ü', '': '', __proto: 'x' },
    });
    await broker.enqueue(task);
    const { message } = await take(broker, 'очередь');
    const payload = EVERY_BYTE;
    expect({ ...message, payload: Buffer.from(message.payload) }).toEqual({ ...task.message, payload });
  });

  it('a task may be scheduled and retained until the last valid date', async (broker) => {
    const endMs = 8.64e15;
    const lock = { uniqueKey: KEY, uniqueTtlMs: endMs };
    await broker.enqueue(newTask({ id: 'a', processAtMs: endMs, retentionMs: endMs, ...lock }));
    await broker.change(QUEUE, { id: 'a' }, 'run');
    await broker.complete(await take(broker));
    expect(await idsIn(broker, 'completed')).toEqual(['a']);
  });

  it('a task with a time that is not valid is rejected, and nothing changes', async (broker) => {
    await putInto(broker, 'pending');
    const before = await everythingOf(broker);
    for (const wrong of [NaN, Infinity, -1]) {
      for (const name of ['processAtMs', 'uniqueTtlMs', 'retentionMs']) {
        const task = newTask({ id: 'a', uniqueKey: KEY, [name]: wrong });
        await expectCode('ERR_OUT_OF_RANGE', broker.enqueue(task));
      }
      const leased = await take(broker);
      await expectCode('ERR_OUT_OF_RANGE', broker.retry(leased, failure(), wrong));
      await broker.release(leased);
    }
    expect(await everythingOf(broker)).toEqual(before);
  });

  it('a task creates its queue, also one that was removed', async (broker) => {
    expect(await broker.queues()).toEqual([]);
    await broker.enqueue(newTask({ queue: 'a' }));
    await broker.enqueue(newTask({ queue: 'b' }));
    expect([...(await broker.queues())].sort()).toEqual(['a', 'b']);
    await broker.removeQueue('a', { force: true });
    expect(await broker.queues()).toEqual(['b']);
    await broker.enqueue(newTask({ queue: 'a' }));
    expect([...(await broker.queues())].sort()).toEqual(['a', 'b']);
  });

  for (const state of TASK_STATES) {
    it(`an id cannot be used again while its task is ${state}`, async (broker) => {
      const { id } = await putInto(broker, state);
      const before = await everythingOf(broker);
      for (const parts of [{}, { group: 'g' }, { processAtMs: broker.clock.wallNow() + LONG_MS }]) {
        await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(newTask({ id, ...parts })));
      }
      expect(await everythingOf(broker)).toEqual(before);
    });
  }

  it('an id can be used in another queue', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    await expect(broker.enqueue(newTask({ id, queue: 'other' }))).resolves.toMatchObject({
      state: 'pending',
    });
  });

  it('an id can be used again when its task is removed', async (broker) => {
    const { id } = await putInto(broker, 'active');
    await putInto(broker, 'archived', { id: 'other' });
    await broker.change(QUEUE, { id: 'other' }, 'delete');
    await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(newTask({ id })));
    await expect(broker.enqueue(newTask({ id: 'other' }))).resolves.toMatchObject({ state: 'pending' });
  });

  it('a task that is refused because of its id takes no lock', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(newTask({ id, uniqueKey: KEY })));
    await expect(broker.enqueue(newTask({ uniqueKey: KEY }))).resolves.toMatchObject({ state: 'pending' });
  });

  for (const onDuplicate of ['reject', 'replace'] as const) {
    it(`a unique task (onDuplicate: ${onDuplicate}) that is enqueued again while it runs is refused because of its id`, async (broker) => {
      const { id } = await putInto(broker, 'active', { uniqueKey: KEY });
      const again = { ...newTask({ id, uniqueKey: KEY }), onDuplicate };
      await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(again));
    });
  }

  for (const state of ['pending', 'active', 'scheduled', 'retry', 'aggregating'] as const) {
    it(`a unique task holds its lock while it is ${state}`, async (broker) => {
      await putInto(broker, state, { uniqueKey: KEY });
      const before = await everythingOf(broker);
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: KEY })));
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: KEY, group: 'g' })));
      expect(await everythingOf(broker)).toEqual(before);
      await broker.enqueue(newTask({ uniqueKey: `${KEY}other` }));
      await broker.enqueue(newTask());
    });
  }

  for (const [when, free] of Object.entries(FREEING)) {
    it(`a unique task frees its lock when ${when}`, async (broker) => {
      const task = newTask({ uniqueKey: KEY });
      await broker.enqueue(task);
      await free(broker, task.message);
      await expect(broker.enqueue(newTask({ uniqueKey: KEY }))).resolves.toMatchObject({
        state: 'pending',
      });
    });
  }

  it('a unique task that is completed and retained has freed its lock', async (broker) => {
    await putInto(broker, 'completed', { uniqueKey: KEY });
    await broker.enqueue(newTask({ uniqueKey: KEY }));
  });

  for (const state of ['scheduled', 'retry', 'aggregating'] as const) {
    it(`unique tasks free their locks when all that are ${state} are deleted or archived`, async (broker) => {
      await putInto(broker, state, { uniqueKey: KEY });
      expect(await broker.change(QUEUE, { state }, 'delete')).toBe(1);
      await putInto(broker, state, { uniqueKey: KEY });
      expect(await broker.change(QUEUE, { state }, 'archive')).toBe(1);
      await broker.enqueue(newTask({ uniqueKey: KEY }));
    });
  }

  it('a unique lock expires after its time', async (broker, time) => {
    const task = newTask({ uniqueKey: KEY, uniqueTtlMs: MINUTE_MS });
    await broker.enqueue(task);
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: KEY })));
    await time.pass(MINUTE_MS);
    const next = newTask({ uniqueKey: KEY });
    await broker.enqueue(next);
    // The lock is the other one's now: the first must not free it.
    await broker.complete(await take(broker));
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: KEY })));
  });

  it('a unique lock of less than a second expires after its time, with the precision of the broker', async (broker, time) => {
    const [first, second] = await broker.enqueueMany(
      [300, 300].map((uniqueTtlMs) => newTask({ uniqueKey: KEY, uniqueTtlMs })),
    );
    expect([first?.status, second]).toMatchObject(['fulfilled', { reason: { code: 'ERR_TASK_DUPLICATE' } }]);
    await time.pass(1_000);
    await broker.enqueue(newTask({ uniqueKey: KEY }));
  });

  it('the lock of a scheduled task expires its time after the task is due', async (broker, time) => {
    const processAtMs = broker.clock.wallNow() + MINUTE_MS;
    await broker.enqueue(newTask({ uniqueKey: KEY, uniqueTtlMs: MINUTE_MS, processAtMs }));
    await time.advance(1.5 * MINUTE_MS);
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: KEY })));
    await time.advance(0.5 * MINUTE_MS + 2 * time.precisionMs);
    await broker.enqueue(newTask({ uniqueKey: KEY }));
  });

  it('enqueueMany adds tasks in their order', async (broker) => {
    const tasks = Array.from({ length: 250 }, () => newTask());
    const outcomes = await broker.enqueueMany(tasks);
    expect(outcomes.map(({ status }) => status)).toEqual(tasks.map(() => 'fulfilled'));
    expect(await takeAll(broker)).toEqual(tasks.map(({ message }) => message.id));
    expect(await broker.enqueueMany([])).toEqual([]);
  });

  it('enqueueMany accepts or refuses each task by itself, with the reason, which names it', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    const tasks = [
      newTask({ id }),
      newTask({ id: 'first', uniqueKey: KEY, headers: { trace: '1' } }),
      newTask({ uniqueKey: KEY }),
      newTask({ id: 'first' }),
      newTask({ id: 'grouped', group: 'g' }),
      newTask({ id: 'later', processAtMs: broker.clock.wallNow() + LONG_MS }),
    ];
    const outcomes = await broker.enqueueMany(tasks);
    const shown = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.state : (outcome.reason as { code: string }).code,
    );
    const [conflict, duplicate] = ['ERR_TASK_ID_CONFLICT', 'ERR_TASK_DUPLICATE'];
    expect(shown).toEqual([conflict, 'pending', duplicate, conflict, 'aggregating', 'scheduled']);
    const op = expect.stringMatching(/^\w+Broker\.enqueueMany$/) as string;
    expect(outcomes[0]).toMatchObject({ reason: { op } });
    expect(await idsIn(broker, 'pending')).toEqual([id, 'first']);
    expect((await broker.task(QUEUE, 'first')).message.headers).toEqual({ trace: '1' });
  });

  for (const queue of ['a{b', 'a}b', 'c}:g:g']) {
    it(`a queue name with a brace is rejected, and nothing is added: ${queue}`, async (broker) => {
      const tick = { entryKey: 'entry', atMs: 1_000_000_000_000 };
      await expectCode('ERR_INVALID_ARG_VALUE', broker.enqueue(newTask({ queue })));
      await expectCode('ERR_INVALID_ARG_VALUE', broker.enqueueTick(newTask({ queue }), tick));
      expect(await broker.queues()).toEqual([]);
    });
  }

  it('the mark of an entry without ticks for 400 days is removed by later ticks of other entries', async (broker) => {
    const atMs = 1_600_000_000_000;
    await broker.enqueueTick(newTask(), { entryKey: 'gone', atMs });
    for (let day = 1; day <= 402; day++) {
      await broker.enqueueTick(newTask(), { entryKey: 'kept', atMs: atMs + day * 86_400_000 });
      const isKept = (await broker.lastTickMs(QUEUE, 'gone')) !== undefined;
      if (day <= 400) expect(isKept).toBe(true);
    }
    expect(await broker.lastTickMs(QUEUE, 'gone')).toBeUndefined();
    expect(await broker.lastTickMs(QUEUE, 'kept')).toBeDefined();
  });

  it('a tick adds its task once, however many schedulers enqueue it', async (broker) => {
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBeUndefined();
    const tick = { entryKey: 'entry', atMs: 1_000_000_000_000 };
    const outcomes = await Promise.all([newTask(), newTask()].map((task) => broker.enqueueTick(task, tick)));
    expect(outcomes.filter((outcome) => outcome !== undefined)).toHaveLength(1);
    expect(await broker.enqueueTick(newTask(), { ...tick, atMs: tick.atMs - 1_000 })).toBeUndefined();
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBe(tick.atMs);
    expect(await takeAll(broker)).toHaveLength(1);
  });

  it('a tick does not affect later ticks or those of other entries', async (broker) => {
    const tick = { entryKey: 'entry', atMs: 1_000_000_000_000 };
    await broker.enqueueTick(newTask(), tick);
    expect(await broker.enqueueTick(newTask(), { ...tick, atMs: tick.atMs + 1_000 })).toBeDefined();
    expect(await broker.enqueueTick(newTask(), { ...tick, entryKey: 'other' })).toBeDefined();
    expect(await broker.enqueueTick(newTask({ queue: 'other' }), tick)).toBeDefined();
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBe(tick.atMs + 1_000);
    expect(await broker.lastTickMs('other', 'entry')).toBe(tick.atMs);
  });

  it('a tick that is far ahead of the time of the broker is refused, and does not stop other schedulers', async (broker, time) => {
    const nowMs = Math.floor(broker.clock.wallNow());
    const early = { entryKey: 'entry', atMs: nowMs + 301_000 };
    await expectCode('ERR_TICK_EARLY', broker.enqueueTick(newTask(), early));
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBeUndefined();
    expect(await broker.queues()).toEqual(time.listsFirst ? [QUEUE] : []);
    expect(await broker.enqueueTick(newTask(), { entryKey: 'entry', atMs: nowMs })).toBeDefined();
    expect(await broker.enqueueTick(newTask(), { entryKey: 'entry', atMs: nowMs + 290_000 })).toBeDefined();
  });

  it('a tick with a time that is not valid is rejected, and is not used up', async (broker) => {
    await putInto(broker, 'pending');
    const before = await everythingOf(broker);
    for (const atMs of [NaN, -1, 8.64e15 + 1]) {
      await expectCode('ERR_OUT_OF_RANGE', broker.enqueueTick(newTask(), { entryKey: 'entry', atMs }));
    }
    const tick = { entryKey: 'entry', atMs: 1_000 };
    await expectCode('ERR_OUT_OF_RANGE', broker.enqueueTick(newTask({ processAtMs: NaN }), tick));
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBeUndefined();
    expect(await everythingOf(broker)).toEqual(before);
  });

  it('a tick whose task is refused counts as added', async (broker) => {
    const { id } = await putInto(broker, 'pending');
    const tick = { entryKey: 'entry', atMs: 1_000_000_000_000 };
    await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueueTick(newTask({ id }), tick));
    expect(await broker.enqueueTick(newTask(), tick)).toBeUndefined();
  });
}
