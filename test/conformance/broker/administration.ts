import { TASK_STATES, type TaskState } from '../../../src/tasks/task-state.ts';
import type { Broker, TaskMessage } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import {
  caseWith,
  everythingOf,
  expectCode,
  failure,
  idsIn,
  LONG_MS,
  newTask,
  putInto,
  QUEUE,
  stateOf,
  take,
  takeAll,
  takeSet,
  type BrokerFactory,
  lockKey,
} from './support.ts';

/** What becomes of a task of each state; undefined: it is refused. The lower part of the table in task-state.ts. */
type Outcomes = Readonly<Record<TaskState, TaskState | 'gone' | undefined>>;

const OUTCOMES = {
  run: {
    ...{ active: undefined, pending: undefined, scheduled: 'pending', retry: 'pending' },
    ...{ archived: 'pending', completed: 'pending', aggregating: 'pending' },
  },
  archive: {
    ...{ active: undefined, pending: 'archived', scheduled: 'archived', retry: 'archived' },
    ...{ archived: undefined, completed: 'archived', aggregating: 'archived' },
  },
  delete: {
    ...{ active: undefined, pending: 'gone', scheduled: 'gone', retry: 'gone' },
    ...{ archived: 'gone', completed: 'gone', aggregating: 'gone' },
  },
} as const satisfies Record<string, Outcomes>;

export function describeAdministration(make: BrokerFactory): void {
  const it = caseWith(make);

  for (const name of ['run', 'archive', 'delete'] as const) {
    const outcomes: Outcomes = OUTCOMES[name];
    const all = (broker: Broker, state: TaskState, group?: string): Promise<number> =>
      broker.change(QUEUE, { state, group }, name);

    describe(`${name} by an inspector`, () => {
      for (const state of TASK_STATES) {
        const outcome = outcomes[state];
        if (outcome === undefined) {
          it(`${name} of one task or all tasks is refused in state ${state}`, async (broker) => {
            const message = await putInto(broker, state);
            const before = await everythingOf(broker);
            await expectCode('ERR_TASK_STATE', broker.change(QUEUE, { id: message.id }, name));
            await expectCode('ERR_TASK_STATE', all(broker, state));
            expect(await everythingOf(broker)).toEqual(before);
          });
          continue;
        }
        it(`${name} makes a task that is ${state} ${outcome}, and changes no other task`, async (broker) => {
          const other = await putInto(broker, 'active');
          const message = await putInto(broker, state);
          const processed = (await broker.queueStats(QUEUE)).processedTotal;
          const { message: kept } = await broker.task(QUEUE, message.id);
          await broker.change(QUEUE, { id: message.id }, name);
          expect(await stateOf(broker, message)).toBe(outcome);
          expect(await stateOf(broker, other)).toBe('active');
          expect((await broker.queueStats(QUEUE)).processedTotal).toBe(processed);
          expect(await broker.groups(QUEUE)).toEqual([]);
          if (outcome !== 'gone') expect((await broker.task(QUEUE, message.id)).message).toEqual(kept);
        });

        it(`${name} makes all tasks that are ${state} ${outcome}, and changes no others`, async (broker) => {
          const messages = [];
          for (let i = 0; i < 3; i++) messages.push(await putIntoThough(broker, state));
          const others = TASK_STATES.filter((other) => other !== state && other !== 'pending');
          const before: Record<string, readonly string[]> = {};
          if (state !== 'pending') {
            for (const other of others) await putInto(broker, other);
          }
          for (const other of others) before[other] = await idsIn(broker, other);
          expect(await all(broker, state)).toBe(3);
          for (const message of messages) expect(await stateOf(broker, message)).toBe(outcome);
          for (const other of others) {
            if (other !== outcome) expect(await idsIn(broker, other)).toEqual(before[other]);
          }
          expect(await all(broker, state)).toBe(0);
        });
      }

      it(`${name} can change the tasks of one group`, async (broker) => {
        for (const group of ['x', 'y', 'x']) await putInto(broker, 'aggregating', { group });
        expect(await all(broker, 'aggregating', 'z')).toBe(0);
        expect(await all(broker, 'aggregating', 'x')).toBe(2);
        expect(await broker.groups(QUEUE)).toEqual([{ group: 'y', size: 1 }]);
        expect(await all(broker, 'aggregating')).toBe(1);
        expect(await broker.groups(QUEUE)).toEqual([]);
      });

      it(`${name} changes thousands of tasks`, async (broker) => {
        const processAtMs = broker.clock.wallNow() + LONG_MS;
        await broker.enqueueMany(Array.from({ length: 2_500 }, () => newTask({ processAtMs })));
        expect(await all(broker, 'scheduled')).toBe(2_500);
        expect((await broker.queueStats(QUEUE)).counts.scheduled).toBe(0);
      });
    });
  }

  it('a task that is run by an inspector waits behind the pending tasks', async (broker) => {
    const { id } = await putInto(broker, 'archived');
    await broker.enqueue(newTask({ id: 'there' }));
    await broker.change(QUEUE, { id }, 'run');
    expect(await takeAll(broker)).toEqual(['there', id]);
  });

  it('all scheduled tasks that are run by an inspector become pending in order of their time', async (broker) => {
    const laterMs = broker.clock.wallNow() + LONG_MS;
    for (const [id, hours] of Object.entries({ b: 2, c: 3, a: 1 }))
      await broker.enqueue(newTask({ id, processAtMs: laterMs + hours * 3_600_000 }));
    await broker.change(QUEUE, { state: 'scheduled' }, 'run');
    expect(await takeAll(broker)).toEqual(['a', 'b', 'c']);
  });

  it('a task that is run by an inspector stays when its former time or retention ends', async (broker, time) => {
    await broker.enqueue(newTask({ id: 'a', retentionMs: 1_000 }));
    await broker.complete(await take(broker));
    await broker.change(QUEUE, { id: 'a' }, 'run');
    await broker.enqueue(newTask({ id: 'b', processAtMs: broker.clock.wallNow() + 1_000 }));
    await broker.change(QUEUE, { id: 'b' }, 'run');
    await time.advance(1_000 + 2 * time.precisionMs);
    await broker.forward([QUEUE]);
    await broker.deleteExpired([QUEUE], 100);
    expect(await takeAll(broker)).toEqual(['a', 'b']);
  });

  describe('a payload', () => {
    it('a payload can be changed while the task is scheduled, and nothing else changes', async (broker) => {
      const message = await putInto(broker, 'scheduled', { payload: Uint8Array.of(1) });
      const before = await broker.task(QUEUE, message.id);
      for (const payload of [Uint8Array.of(2, 255), Buffer.of(2, 255)]) {
        await broker.updatePayload(QUEUE, message.id, payload);
        payload[0] = 9;
        const after = await broker.task(QUEUE, message.id);
        expect([...after.message.payload]).toEqual([2, 255]);
        expect({ ...after, message: { ...after.message, payload: before.message.payload } }).toEqual(before);
      }
    });

    for (const state of TASK_STATES) {
      if (state === 'scheduled') continue;
      it(`a payload cannot be changed while the task is ${state}`, async (broker) => {
        const { id } = await putInto(broker, state);
        await expectCode('ERR_TASK_STATE', broker.updatePayload(QUEUE, id, Uint8Array.of(1)));
        expect((await broker.task(QUEUE, id)).message.payload).toHaveLength(0);
      });
    }
  });

  it('a queue can be paused once and resumed once', async (broker) => {
    await putInto(broker, 'pending');
    await expectCode('ERR_QUEUE_STATE', broker.resume(QUEUE));
    await broker.pause(QUEUE);
    expect((await broker.queueStats(QUEUE)).isPaused).toBe(true);
    await expectCode('ERR_QUEUE_STATE', broker.pause(QUEUE));
    await broker.resume(QUEUE);
    expect((await broker.queueStats(QUEUE)).isPaused).toBe(false);
    await expectCode('ERR_QUEUE_STATE', broker.resume(QUEUE));
  });

  it('a pause stops only new runs', async (broker, time) => {
    await broker.enqueue(newTask({ id: 'a' }));
    const task = await take(broker);
    await broker.pause(QUEUE);
    await broker.enqueue(newTask({ id: 'b', processAtMs: broker.clock.wallNow() + 1_000 }));
    await broker.enqueue(newTask({ id: 'c', group: 'g' }));
    await broker.complete(task);
    await time.pass(1_000);
    await broker.forward([QUEUE]);
    expect(await idsIn(broker, 'pending')).toEqual(['b']);
    expect((await takeSet(broker, 'g')).messages).toHaveLength(1);
    expect(await takeAll(broker)).toEqual([]);
  });

  it('a queue without tasks is removed', async (broker) => {
    const message = await putInto(broker, 'pending');
    await broker.change(QUEUE, { id: message.id }, 'delete');
    await broker.removeQueue(QUEUE, { force: false });
    expect(await broker.queues()).toEqual([]);
    await expectCode('ERR_QUEUE_NOT_FOUND', broker.removeQueue(QUEUE, { force: false }));
  });

  it('options with an unknown name or a wrong value are rejected, and nothing is removed', async (broker) => {
    await putInto(broker, 'pending');
    const before = await everythingOf(broker);
    const refuse = (method: 'removeQueue' | 'repair' | 'takeGroup' | 'cancel', ...args: unknown[]) =>
      (broker[method] as (...args: unknown[]) => Promise<unknown>)(...args);
    const limits = { graceMs: 0, maxDelayMs: 0, maxSize: 0 };
    await expectCode('ERR_INVALID_ARG_TYPE', refuse('removeQueue', QUEUE, { force: 'no' }));
    await expectCode('ERR_INVALID_ARG_TYPE', refuse('removeQueue', QUEUE));
    await expectCode('ERR_UNKNOWN_OPTION', refuse('removeQueue', QUEUE, { force: true, froce: true }));
    await expectCode('ERR_UNKNOWN_OPTION', refuse('repair', QUEUE, { apply: true, aply: true }));
    await expectCode('ERR_UNKNOWN_OPTION', refuse('takeGroup', QUEUE, 'g', { ...limits, max: 1 }, LONG_MS));
    await expectCode('ERR_INVALID_ARG_VALUE', refuse('cancel', { taskId: 'a', outcome: 'stop' }, 0));
    expect(await everythingOf(broker)).toEqual(before);
  });

  for (const state of TASK_STATES) {
    it(`a queue with a task that is ${state} is not removed ${state === 'active' ? 'even with force' : 'without force'}`, async (broker) => {
      const message = await putInto(broker, state);
      await broker.enqueue(newTask());
      const before = await everythingOf(broker);
      await expectCode('ERR_QUEUE_NOT_EMPTY', broker.removeQueue(QUEUE, { force: false }));
      if (state === 'active')
        await expectCode('ERR_QUEUE_NOT_EMPTY', broker.removeQueue(QUEUE, { force: true }));
      expect(await everythingOf(broker)).toEqual(before);
      if (state === 'active') return;
      await broker.removeQueue(QUEUE, { force: true });
      await expectCode('ERR_QUEUE_NOT_FOUND', broker.task(QUEUE, message.id));
    });
  }

  it('a removed queue leaves no data behind', async (broker, time) => {
    const soonMs = broker.clock.wallNow() + 1_000;
    await broker.enqueue(newTask({ processAtMs: soonMs, uniqueKey: lockKey('scheduled') }));
    await broker.enqueueTick(newTask(), { entryKey: 'entry', atMs: 1_000 });
    await broker.complete(await take(broker));
    for (const state of ['completed', 'archived', 'retry', 'aggregating'] as const) {
      await putInto(broker, state, { id: state, uniqueKey: lockKey(state) });
    }
    await putInto(broker, 'pending', { uniqueKey: lockKey('pending') });
    await broker.pause(QUEUE);
    await broker.removeQueue(QUEUE, { force: true });

    await broker.enqueue(newTask({ id: 'new' }));
    await time.pass(1_000);
    await broker.forward([QUEUE]);
    const stats = await broker.queueStats(QUEUE);
    const nothing = { groups: 0, processed: 0, failed: 0, processedTotal: 0, failedTotal: 0 };
    expect(stats).toMatchObject({ ...nothing, isPaused: false });
    expect(Object.values(stats.counts).reduce((sum, count) => sum + count, 0)).toBe(1);
    expect(await broker.groups(QUEUE)).toEqual([]);
    expect(await broker.lastTickMs(QUEUE, 'entry')).toBeUndefined();
    expect(await takeAll(broker)).toEqual(['new']);
    for (const key of ['scheduled', 'completed', 'archived', 'retry', 'aggregating', 'pending']) {
      await broker.enqueue(newTask({ id: key, uniqueKey: lockKey(key) }));
    }
  });

  it('removing a queue does not change other queues', async (broker) => {
    await putInto(broker, 'pending', { queue: 'other', uniqueKey: 'key' });
    await putInto(broker, 'pending');
    await broker.removeQueue(QUEUE, { force: true });
    expect(await broker.queues()).toEqual(['other']);
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ queue: 'other', uniqueKey: 'key' })));
    await broker.archive(await take(broker, 'other'), failure());
  });
}

/** As `putInto`, although others are pending. */
async function putIntoThough(broker: Broker, state: TaskState): Promise<TaskMessage> {
  return state === 'pending' ? (await broker.enqueue(newTask())).message : putInto(broker, state);
}
