import type { Broker, GroupLimits, TaskSet } from 'escapement/tasks';
import { expect } from 'vitest';
import {
  caseWith,
  catchUp,
  everythingOf,
  expectCode,
  idsIn,
  LONG_MS,
  newTask,
  QUEUE,
  stateOf,
  takeAll,
  takeSet,
  type BrokerFactory,
  lockKey,
} from './support.ts';

const GROUP = 'g';
const NEVER: GroupLimits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 0 };

async function add(broker: Broker, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await broker.enqueue(newTask({ id, group: GROUP }));
}

function idsOfSet({ messages }: TaskSet): string[] {
  return messages.map(({ id }) => id);
}

export function describeAggregation(make: BrokerFactory): void {
  const it = caseWith(make);

  it('a group is listed while it has tasks', async (broker) => {
    expect(await broker.groups(QUEUE)).toEqual([]);
    await add(broker, 'a', 'b');
    await broker.enqueue(newTask({ group: 'other' }));
    await broker.enqueue(newTask({ group: GROUP, queue: 'another' }));
    const groups = [...(await broker.groups(QUEUE))].sort((x, y) => x.size - y.size);
    expect(groups).toEqual([
      { group: 'other', size: 1 },
      { group: GROUP, size: 2 },
    ]);
    await broker.change(QUEUE, { id: 'a' }, 'delete');
    await broker.change(QUEUE, { id: 'b' }, 'archive');
    expect(await broker.groups(QUEUE)).toEqual([{ group: 'other', size: 1 }]);
  });

  it('no set is taken out of a group that does not exist', async (broker) => {
    const nothing = { set: undefined, againInMs: undefined };
    expect(await broker.takeGroup(QUEUE, GROUP, NEVER, LONG_MS)).toEqual(nothing);
    await broker.enqueue(newTask());
    expect(await broker.takeGroup(QUEUE, GROUP, NEVER, LONG_MS)).toEqual(nothing);
  });

  it('a group is taken after graceMs without a new task, and not before', async (broker, time) => {
    const limits = { ...NEVER, graceMs: 3_000 };
    await add(broker, 'a');
    await time.advance(1_000);
    await add(broker, 'b');
    const early = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
    expect(early.set).toBeUndefined();
    expect(early.againInMs).toBeGreaterThan(3_000 - 1_000 - time.precisionMs);
    expect(early.againInMs).toBeLessThanOrEqual(3_000 + time.precisionMs);
    await time.pass(3_000);
    const { set, againInMs } = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
    expect(set).toMatchObject({ queue: QUEUE, group: GROUP });
    expect(set && idsOfSet(set)).toEqual(['a', 'b']);
    expect(againInMs).toBeUndefined();
  });

  it('a group is taken when its oldest task has waited for maxDelayMs, although tasks are added', async (broker, time) => {
    const limits = { ...NEVER, maxDelayMs: 10_000 };
    await add(broker, 'a');
    await time.advance(2_000);
    await add(broker, 'b');
    const early = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
    expect(early.set).toBeUndefined();
    expect(early.againInMs).toBeLessThanOrEqual(8_000 + time.precisionMs);
    await time.pass(8_000);
    const { set } = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
    expect(set && idsOfSet(set)).toEqual(['a', 'b']);
  });

  it('a group is taken when it has maxSize tasks, the oldest first, and the rest stays', async (broker) => {
    await add(broker, 'a');
    const limits = { ...NEVER, maxSize: 2 };
    expect((await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS)).set).toBeUndefined();
    await add(broker, 'b', 'c');
    const { set, againInMs } = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
    expect(set && idsOfSet(set)).toEqual(['a', 'b']);
    expect(againInMs).toBeGreaterThan(0);
    expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 1 }]);
  });

  it('a group with more than maxSize tasks can be taken again immediately', async (broker) => {
    await add(broker, 'a', 'b', 'c', 'd');
    expect((await broker.takeGroup(QUEUE, GROUP, { ...NEVER, maxSize: 2 }, LONG_MS)).againInMs).toBe(0);
  });

  it('tasks in a set are aggregating, and are in no other set', async (broker) => {
    await add(broker, 'a', 'b');
    const set = await takeSet(broker, GROUP, 2);
    expect(await broker.groups(QUEUE)).toEqual([]);
    const again = await broker.takeGroup(QUEUE, GROUP, { ...NEVER, graceMs: 0 }, LONG_MS);
    expect(again.set).toBeUndefined();
    for (const message of set.messages) {
      expect(await stateOf(broker, message)).toBe('aggregating');
      for (const change of ['run', 'archive', 'delete'] as const)
        await expectCode('ERR_TASK_STATE', broker.change(QUEUE, { id: message.id }, change));
      await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(newTask({ id: message.id })));
    }
    expect(await broker.change(QUEUE, { state: 'aggregating', group: GROUP }, 'delete')).toBe(0);
    await expectCode('ERR_QUEUE_NOT_EMPTY', broker.removeQueue(QUEUE, { force: false }));
  });

  it('a set is replaced by a task in one step, and its locks are freed', async (broker) => {
    await broker.enqueue(newTask({ id: 'a', group: GROUP, uniqueKey: lockKey('a') }));
    await broker.enqueue(newTask({ id: 'b', group: GROUP, uniqueKey: lockKey('b') }));
    await add(broker, 'c');
    const set = await takeSet(broker, GROUP, 2);
    const record = await broker.replaceSet(set, newTask({ id: 'sum', uniqueKey: lockKey('a') }));
    expect(record.state).toBe('pending');
    for (const message of set.messages) expect(await stateOf(broker, message)).toBe('gone');
    await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: lockKey('a') })));
    await broker.enqueue(newTask({ id: 'd', uniqueKey: lockKey('b') }));
    expect(await takeAll(broker)).toEqual(['sum', 'd']);
    expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 1 }]);
  });

  it('a set can be replaced by a task of a group, or by a scheduled one', async (broker) => {
    await add(broker, 'a', 'b');
    const [first, second] = [await takeSet(broker, GROUP, 1), await takeSet(broker, GROUP, 1)];
    expect((await broker.replaceSet(first, newTask({ group: 'upper' }))).state).toBe('aggregating');
    const processAtMs = broker.clock.wallNow() + LONG_MS;
    expect((await broker.replaceSet(second, newTask({ processAtMs }))).state).toBe('scheduled');
    expect(await broker.groups(QUEUE)).toEqual([{ group: 'upper', size: 1 }]);
  });

  it('a set stays as it is if the task that replaces it is refused', async (broker) => {
    await add(broker, 'a', 'b');
    await broker.enqueue(newTask({ id: 'there', uniqueKey: lockKey('key') }));
    const set = await takeSet(broker, GROUP, 2);
    const before = await everythingOf(broker);
    await expectCode('ERR_TASK_ID_CONFLICT', broker.replaceSet(set, newTask({ id: 'there' })));
    await expectCode('ERR_TASK_DUPLICATE', broker.replaceSet(set, newTask({ uniqueKey: lockKey('key') })));
    await expectCode('ERR_INVALID_ARG_VALUE', broker.replaceSet(set, newTask({ queue: 'other' })));
    expect(await everythingOf(broker)).toEqual(before);
    await broker.replaceSet(set, newTask());
  });

  it('a set can be replaced by a task with the id of one of its tasks', async (broker) => {
    await add(broker, 'a', 'b');
    await broker.replaceSet(await takeSet(broker, GROUP, 2), newTask({ id: 'a' }));
    expect((await broker.queueStats(QUEUE)).counts).toMatchObject({ pending: 1, aggregating: 0 });
    expect(await takeAll(broker)).toEqual(['a']);
  });

  it('tasks that are being aggregated are listed with their group, behind those that wait', async (broker) => {
    await add(broker, 'a', 'b', 'c', 'd');
    await broker.enqueue(newTask({ id: 'e', group: 'other' }));
    await takeSet(broker, GROUP, 3);
    expect(await idsIn(broker, 'aggregating', GROUP)).toEqual(['d', 'a', 'b', 'c']);
    expect(await idsIn(broker, 'aggregating', 'other')).toEqual(['e']);
    const secondPage = await broker.tasks(QUEUE, 'aggregating', { page: 2, size: 3 }, GROUP);
    expect(secondPage.map(({ message }) => message.id)).toEqual(['c']);
  });

  it('a set can be replaced only once', async (broker) => {
    await add(broker, 'a');
    const set = await takeSet(broker, GROUP, 1);
    await broker.replaceSet(set, newTask({ id: 'sum' }));
    await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
    await expectCode('ERR_LEASE_LOST', broker.replaceSet({ ...set, id: 'unknown' }, newTask()));
    expect(await takeAll(broker)).toEqual(['sum']);
  });

  it('a set that was held for too long returns to its group in its former order, and a group that had no task left is listed again', async (broker, time) => {
    await add(broker, 'a', 'b', 'c', 'd');
    const [first, second] = [
      await takeSet(broker, GROUP, 2, LONG_MS),
      await takeSet(broker, GROUP, 2, 1_000),
    ];
    expect(await broker.groups(QUEUE)).toEqual([]);
    expect(await broker.reclaimSets([QUEUE])).toBe(0);
    await time.pass(1_000);
    await catchUp(broker);
    expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 2 }]);
    await time.advance(LONG_MS);
    await catchUp(broker);
    expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 4 }]);
    expect(await idsIn(broker, 'aggregating', GROUP)).toEqual(['a', 'b', 'c', 'd']);
    for (const set of [first, second]) await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
    expect(idsOfSet(await takeSet(broker, GROUP, 4))).toEqual(['a', 'b', 'c', 'd']);
  });

  it('a set is removed with its queue', async (broker, time) => {
    await add(broker, 'a');
    const set = await takeSet(broker, GROUP, 1, 1_000);
    await broker.removeQueue(QUEUE, { force: true });
    await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
    await broker.enqueue(newTask({ id: 'a' }));
    await time.pass(1_000);
    await catchUp(broker);
    expect(await broker.groups(QUEUE)).toEqual([]);
  });
}
