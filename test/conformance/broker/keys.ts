import type { Broker, LeasedTask, NewTask } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import {
  caseWith,
  catchUp,
  expectCode,
  failure,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  takeAll,
  takeSet,
  type BrokerFactory,
  type BrokerTime,
  type TaskParts,
} from './support.ts';

/** A task whose id begins with its key: 'a1', 'a2', …; '1' has none. */
export function keyed(id: string, parts: TaskParts = {}): NewTask {
  return newTask({ id, key: keyOf(id), ...parts });
}

export function keyOf(id: string): string {
  return id.replace(/\d+$/u, '');
}

/** Enqueues tasks one after the other, by their ids. */
export async function put(broker: Broker, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await broker.enqueue(keyed(id));
}

/** Leases tasks. @returns their ids in order. */
export async function next(broker: Broker, limit = 1_000): Promise<string[]> {
  return idsOf(await broker.dequeue(QUEUE, limit, LONG_MS));
}

/** Tasks of a key that is never empty. */
const FLOOD = 500;
const OTHERS = ['b1', 'c1', 'd1', 'e1', 'f1', 'g1', 'h1', 'i1', 'j1', 'k1'];

interface Scene extends BrokerTime {
  readonly broker: Broker;
}

/** How tasks become pending behind a flood. */
interface Way {
  /** Before the flood. @returns leases of the tasks. */
  readonly before?: (setup: Scene) => Promise<readonly LeasedTask[]>;
  /** For each task, after the flood. */
  readonly after?: (setup: Scene, nth: number, lease: LeasedTask | undefined) => Promise<unknown>;
  /** When all are there. */
  readonly finally?: (setup: Scene) => Promise<unknown>;
}

async function leaseOthers({ broker }: Scene, leaseMs = LONG_MS): Promise<readonly LeasedTask[]> {
  await put(broker, ...OTHERS);
  const leased = await broker.dequeue(QUEUE, OTHERS.length, leaseMs);
  expect(idsOf(leased)).toEqual(OTHERS);
  return leased;
}

function leased(task: LeasedTask | undefined): LeasedTask {
  if (task === undefined) throw new Error('no task was leased before the flood');
  return task;
}

async function passAndForward({ broker, pass }: Scene, ms: number): Promise<void> {
  await pass(ms);
  await catchUp(broker);
}

const WAYS: Readonly<Record<string, Way>> = {
  'is enqueued': { after: ({ broker }, nth) => put(broker, OTHERS[nth] ?? '') },
  'is scheduled, and due': {
    after: ({ broker }, nth) =>
      broker.enqueue(keyed(OTHERS[nth] ?? '', { processAtMs: broker.clock.wallNow() + 1_000 * (nth + 1) })),
    finally: (setup) => passAndForward(setup, 20_000),
  },
  'has failed, and is tried again': {
    before: leaseOthers,
    after: ({ broker }, _, lease) => broker.retry(leased(lease), failure(), broker.clock.wallNow() + 1_000),
    finally: (setup) => passAndForward(setup, 2_000),
  },
  'is released': {
    before: leaseOthers,
    after: ({ broker }, _, lease) => broker.release(leased(lease)),
  },
  'has lost its worker': {
    before: (setup) => leaseOthers(setup, 1_000),
    finally: async (setup) => {
      const { broker, pass } = setup;
      await pass(1_000);
      for (const lost of await broker.recover([QUEUE], 0, LONG_MS)) {
        const lostWorker = { error: 'lost', isFailure: false, isRecovery: true };
        await broker.retry(lost, lostWorker, broker.clock.wallNow() + 1_000);
      }
      await passAndForward(setup, 2_000);
    },
  },
  'is run by an inspector': {
    before: async (setup) => {
      const leases = await leaseOthers(setup);
      for (const lease of leases) await setup.broker.archive(lease, failure());
      return leases;
    },
    after: ({ broker }, nth) => broker.change(QUEUE, { id: OTHERS[nth] ?? '' }, 'run'),
  },
  'comes from a group': {
    after: async ({ broker }, nth) => {
      const group = `g${nth}`;
      await broker.enqueue(newTask({ group }));
      await broker.replaceSet(await takeSet(broker, group), keyed(OTHERS[nth] ?? ''));
    },
  },
  'comes while the queue is paused': {
    after: async ({ broker }, nth) => {
      if (nth === 0) await broker.pause(QUEUE);
      await put(broker, OTHERS[nth] ?? '');
    },
    finally: ({ broker }) => broker.resume(QUEUE),
  },
};

export function describeKeys(make: BrokerFactory): void {
  const it = caseWith(make);

  it('the keys of a queue take turns, and each gives its tasks in order', async (broker) => {
    await put(broker, 'a1', 'a2', 'a3', 'b1', '1', 'b2', '2', 'c1');
    expect(await takeAll(broker)).toEqual(['a1', 'b1', '1', 'c1', 'a2', 'b2', '2', 'a3']);
  });

  it('the turns of keys go on from one dequeue to the next', async (broker) => {
    await put(broker, 'a1', 'a2', 'a3', 'b1', 'b2', 'c1');
    const order = [];
    for (const limit of [1, 2, 1, 0, 2]) order.push(await next(broker, limit));
    expect(order).toEqual([['a1'], ['b1', 'c1'], ['a2'], [], ['b2', 'a3']]);
  });

  it('a key that gets its first task enters behind all others, also behind the one that was served last', async (broker) => {
    await put(broker, 'a1', 'a2', 'a3', 'b1', 'b2');
    expect(await next(broker, 1)).toEqual(['a1']);
    await put(broker, 'c1');
    expect(await next(broker, 3)).toEqual(['b1', 'a2', 'c1']);
    await put(broker, 'c2');
    expect(await takeAll(broker)).toEqual(['b2', 'a3', 'c2']);
  });

  it('a task has its key in a lease, in a list and by itself', async (broker) => {
    const message = { id: 'k1', key: 'Ключ / {1}: a,b' };
    await broker.enqueue(newTask(message));
    expect((await broker.task(QUEUE, 'k1')).message).toMatchObject({ ...message, headers: {} });
    expect(await broker.tasks(QUEUE, 'pending', { page: 1, size: 1 })).toMatchObject([{ message }]);
    expect(await take(broker)).toMatchObject({ message });
  });

  it('pending tasks are listed with the key first whose turn is next, in pages without gaps', async (broker) => {
    await put(broker, 'a1', 'b1', 'a2', 'b2', 'c1', 'a3');
    await next(broker, 1);
    const pages = [1, 2, 3, 4].map((page) => broker.tasks(QUEUE, 'pending', { page, size: 2 }));
    const ids = (await Promise.all(pages)).flatMap(idsOf);
    expect(ids[0]).toBe('b1');
    expect([...ids].sort()).toEqual(['a2', 'a3', 'b1', 'b2', 'c1']);
    for (const key of ['a', 'b'])
      expect(ids.filter((id) => keyOf(id) === key)).toEqual(ids.filter((id) => keyOf(id) === key).sort());
  });

  for (const many of ['', 'b']) {
    it(`a key that has more tasks than its share gives them when the others have none left: ${JSON.stringify(many)}`, async (broker) => {
      const ids = Array.from({ length: 9 }, (_, n) => `${many}${n + 1}`);
      await put(broker, 'a1', ...ids);
      expect(await next(broker, 7)).toEqual(['a1', ...ids.slice(0, 6)]);
      expect(await next(broker)).toEqual(ids.slice(6));
    });
  }

  it('a queue with keys gives no task while it is paused', async (broker) => {
    await put(broker, 'a1', '1');
    await broker.pause(QUEUE);
    expect(await next(broker)).toEqual([]);
    await broker.resume(QUEUE);
    expect(await next(broker)).toEqual(['a1', '1']);
  });

  it('a key that has lost all its tasks gives up its turn', async (broker) => {
    await put(broker, 'a1', 'b1', 'c1');
    await broker.change(QUEUE, { id: 'a1' }, 'delete');
    await broker.change(QUEUE, { id: 'b1' }, 'archive');
    await put(broker, 'b2', 'a2');
    expect(await takeAll(broker)).toEqual(['c1', 'b2', 'a2']);
  });

  for (const [way, { before, after, finally: end }] of Object.entries(WAYS)) {
    it(`a task that ${way} behind hundreds of another key starts after at most one task of each key`, async (broker, time) => {
      const setup = { broker, ...time };
      const leases = await before?.(setup);
      await broker.enqueueMany(Array.from({ length: FLOOD }, (_, n) => keyed(`a${n}`)));
      for (const nth of OTHERS.keys()) await after?.(setup, nth, leases?.[nth]);
      await end?.(setup);
      expect((await next(broker, OTHERS.length + 1)).sort()).toEqual(['a0', ...OTHERS]);
      expect(await next(broker)).toHaveLength(FLOOD - 1);
    });
  }

  it('a hundred keys with a thousand tasks are served evenly, whatever comes meanwhile', async (broker) => {
    const keys = Array.from({ length: 100 }, (_, n) => `key${n}-`);
    const tasks = Array.from({ length: 10 }, (_, n) => keys.map((key) => keyed(`${key}${n}`))).flat();
    await broker.enqueueMany(tasks);
    const served = new Map<string, number>();
    for (let round = 0; round < 8; round++) {
      for (const id of await next(broker, 100)) served.set(keyOf(id), (served.get(keyOf(id)) ?? 0) + 1);
      await put(broker, `key${round}-9${round}`);
      expect(new Set(served.values())).toEqual(new Set([round + 1]));
    }
    expect(served.size).toBe(100);
  });

  it('a released task is the next of its key, and one that is tried again or run is the last', async (broker, time) => {
    await put(broker, 'a1', 'a2', 'a3', 'a4');
    const [a1, a2, a3] = await broker.dequeue(QUEUE, 3, LONG_MS);
    if (a1 === undefined || a2 === undefined || a3 === undefined) throw new Error('there were three');
    await broker.retry(a1, failure(), broker.clock.wallNow() + 1_000);
    await broker.archive(a2, failure());
    await broker.change(QUEUE, { id: 'a2' }, 'run');
    await broker.release(a3);
    await time.pass(1_000);
    await catchUp(broker);
    expect(await takeAll(broker)).toEqual(['a3', 'a4', 'a2', 'a1']);
  });

  it('a task with isNext is the next of its key, but its key has no other turn than before', async (broker) => {
    await put(broker, 'a1', 'b1', 'b2');
    for (const id of ['b8', 'b9', 'c9'])
      expect(await broker.enqueue({ ...keyed(id), isNext: true })).toMatchObject({ state: 'pending' });
    expect(await takeAll(broker)).toEqual(['a1', 'b9', 'c9', 'b8', 'b1', 'b2']);
  });

  it('without keys a task with isNext is the next of the queue, the last one first', async (broker) => {
    await put(broker, '1', '2');
    const outcomes = await broker.enqueueMany(
      ['8', '9'].map((id) => ({ ...keyed(id), isNext: true })).concat({ ...keyed('3'), isNext: false }),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(await takeAll(broker)).toEqual(['9', '8', '1', '2', '3']);
  });

  describe('a duplicate that replaces a pending task', () => {
    const unique = { uniqueKey: 'asynq:{default}:unique:only-one' };

    it('a duplicate with the same key as the pending task that it replaces stays where that task was', async (broker) => {
      await broker.enqueue(keyed('a1', unique));
      await put(broker, 'a2');
      await broker.enqueue({ ...keyed('a3', unique), onDuplicate: 'replace' });
      expect(await takeAll(broker)).toEqual(['a1', 'a2']);
    });

    for (const [name, id] of [
      ['a key keeps its turn', 'a1'],
      ['tasks without key keep their turn', '1'],
    ] as const)
      it(`${name} when a duplicate with isNext replaces the only task`, async (broker) => {
        await broker.enqueue(keyed(id, unique));
        await put(broker, 'b1');
        await broker.enqueue({ ...keyed(`${id}9`, unique), onDuplicate: 'replace', isNext: true });
        expect(await takeAll(broker)).toEqual([id, 'b1']);
      });

    it('a duplicate with isNext that replaces a pending task is the next task of its key', async (broker) => {
      await put(broker, 'a1', 'a2');
      await broker.enqueue(keyed('a3', unique));
      await broker.enqueue({ ...keyed('a4', unique), onDuplicate: 'replace', isNext: true });
      expect(await takeAll(broker)).toEqual(['a3', 'a1', 'a2']);
    });

    it('a duplicate with another key than the pending task that it replaces is the last task of its own key', async (broker) => {
      await broker.enqueue(keyed('a1', unique));
      await put(broker, 'b1', 'a2');
      await broker.enqueue({ ...keyed('b2', unique), onDuplicate: 'replace' });
      await expectCode('ERR_TASK_NOT_FOUND', broker.task(QUEUE, 'b2'));
      expect((await broker.task(QUEUE, 'a1')).message.key).toBe('b');
      expect(await takeAll(broker)).toEqual(['a2', 'b1', 'a1']);
    });
  });

  it('tasks in a group have no turn, and the task that replaces a set has that of its own key', async (broker) => {
    for (const id of ['a1', 'a2']) await broker.enqueue(keyed(id, { group: 'g' }));
    await put(broker, 'b1', 'b2', 'a3', 'a4');
    const set = await takeSet(broker, 'g', 2);
    expect(set.messages.map(({ key }) => key)).toEqual(['a', 'a']);
    await broker.replaceSet(set, keyed('b3'));
    expect(await takeAll(broker)).toEqual(['b1', 'a3', 'b2', 'a4', 'b3']);
  });
}
