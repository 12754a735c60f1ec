import type { Broker, GroupLimits, TaskSet } from 'escapement/tasks';
import { describe, expect } from 'vitest';
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
  type BrokerFactory,
} from './support.ts';

const GROUP = 'g';
const NEVER: GroupLimits = { graceMs: LONG_MS, maxDelayMs: 0, maxSize: 0 };

async function add(broker: Broker, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await broker.enqueue(newTask({ id, group: GROUP }));
}

/** Takes what there is, or `maxSize` of it, which must be there. */
async function takeSet(broker: Broker, maxSize: number, holdMs = LONG_MS): Promise<TaskSet> {
  const { set } = await broker.takeGroup(QUEUE, GROUP, { ...NEVER, maxSize }, holdMs);
  if (set === undefined) throw new Error('it was to be time');
  return set;
}

function idsOfSet({ messages }: TaskSet): string[] {
  return messages.map(({ id }) => id);
}

export function describeAggregation(make: BrokerFactory): void {
  const it = caseWith(make);

  describe('groups', () => {
    it('are there while they have tasks', async ({ broker }) => {
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
  });

  describe('a group', () => {
    it('that is not there has nothing to take', async ({ broker }) => {
      const nothing = { set: undefined, againInMs: undefined };
      expect(await broker.takeGroup(QUEUE, GROUP, NEVER, LONG_MS)).toEqual(nothing);
      await broker.enqueue(newTask());
      expect(await broker.takeGroup(QUEUE, GROUP, NEVER, LONG_MS)).toEqual(nothing);
    });

    it('is taken when it was quiet for the grace, and not before', async ({
      broker,
      advance,
      precisionMs,
    }) => {
      const limits = { ...NEVER, graceMs: 3_000 };
      await add(broker, 'a');
      await advance(1_000);
      await add(broker, 'b');
      const early = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
      expect(early.set).toBeUndefined();
      expect(early.againInMs).toBeGreaterThan(3_000 - 1_000 - precisionMs);
      expect(early.againInMs).toBeLessThanOrEqual(3_000 + precisionMs);
      await advance(3_000 + precisionMs);
      const { set, againInMs } = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
      expect(set).toMatchObject({ queue: QUEUE, group: GROUP });
      expect(set && idsOfSet(set)).toEqual(['a', 'b']);
      expect(againInMs).toBeUndefined();
    });

    it('is taken when its oldest has waited for too long, although more come', async ({
      broker,
      advance,
      precisionMs,
    }) => {
      const limits = { ...NEVER, maxDelayMs: 3_000 };
      await add(broker, 'a');
      await advance(2_000);
      await add(broker, 'b');
      const early = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
      expect(early.set).toBeUndefined();
      expect(early.againInMs).toBeLessThanOrEqual(1_000 + precisionMs);
      await advance(1_000 + precisionMs);
      const { set } = await broker.takeGroup(QUEUE, GROUP, limits, LONG_MS);
      expect(set && idsOfSet(set)).toEqual(['a', 'b']);
    });

    it('is taken when it has enough, the oldest first, and the rest waits on', async ({ broker }) => {
      await add(broker, 'a');
      expect(await broker.takeGroup(QUEUE, GROUP, { ...NEVER, maxSize: 2 }, LONG_MS)).toMatchObject({
        set: undefined,
      });
      await add(broker, 'b', 'c');
      const { set, againInMs } = await broker.takeGroup(QUEUE, GROUP, { ...NEVER, maxSize: 2 }, LONG_MS);
      expect(set && idsOfSet(set)).toEqual(['a', 'b']);
      expect(againInMs).toBeGreaterThan(0);
      expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 1 }]);
    });

    it('that has more than enough is to be asked for again at once', async ({ broker }) => {
      await add(broker, 'a', 'b', 'c', 'd');
      expect((await broker.takeGroup(QUEUE, GROUP, { ...NEVER, maxSize: 2 }, LONG_MS)).againInMs).toBe(0);
    });
  });

  describe('a set', () => {
    it('holds its tasks: they are aggregating, and nobody else gets them', async ({ broker }) => {
      await add(broker, 'a', 'b');
      const set = await takeSet(broker, 2);
      expect(await broker.groups(QUEUE)).toEqual([]);
      expect(await broker.takeGroup(QUEUE, GROUP, { ...NEVER, graceMs: 0 }, LONG_MS)).toMatchObject({
        set: undefined,
      });
      for (const message of set.messages) {
        expect(await stateOf(broker, message)).toBe('aggregating');
        await expectCode('ERR_TASK_STATE', broker.change(QUEUE, { id: message.id }, 'run'));
        await expectCode('ERR_TASK_STATE', broker.change(QUEUE, { id: message.id }, 'archive'));
        await expectCode('ERR_TASK_STATE', broker.change(QUEUE, { id: message.id }, 'delete'));
        await expectCode('ERR_TASK_ID_CONFLICT', broker.enqueue(newTask({ id: message.id })));
      }
      expect(await broker.change(QUEUE, { state: 'aggregating', group: GROUP }, 'delete')).toBe(0);
      await expectCode('ERR_QUEUE_NOT_EMPTY', broker.removeQueue(QUEUE, { force: false }));
    });

    it('is replaced by a task: both, at once, with the locks', async ({ broker }) => {
      await broker.enqueue(newTask({ id: 'a', group: GROUP, uniqueKey: 'key a' }));
      await broker.enqueue(newTask({ id: 'b', group: GROUP, uniqueKey: 'key b' }));
      await add(broker, 'c');
      const set = await takeSet(broker, 2);
      const record = await broker.replaceSet(set, newTask({ id: 'sum', uniqueKey: 'key a' }));
      expect(record.state).toBe('pending');
      for (const message of set.messages) expect(await stateOf(broker, message)).toBe('gone');
      await expectCode('ERR_TASK_DUPLICATE', broker.enqueue(newTask({ uniqueKey: 'key a' })));
      await broker.enqueue(newTask({ id: 'd', uniqueKey: 'key b' }));
      expect(await takeAll(broker)).toEqual(['sum', 'd']);
      expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 1 }]);
    });

    it('may be replaced by one that aggregates again, or is for later', async ({ broker }) => {
      await add(broker, 'a', 'b');
      const [first, second] = [await takeSet(broker, 1), await takeSet(broker, 1)];
      expect((await broker.replaceSet(first, newTask({ group: 'upper' }))).state).toBe('aggregating');
      const processAtMs = broker.clock.wallNow() + LONG_MS;
      expect((await broker.replaceSet(second, newTask({ processAtMs }))).state).toBe('scheduled');
      expect(await broker.groups(QUEUE)).toEqual([{ group: 'upper', size: 1 }]);
    });

    it('stays as it is if its task is refused', async ({ broker }) => {
      await add(broker, 'a', 'b');
      await broker.enqueue(newTask({ id: 'there', uniqueKey: 'key' }));
      const set = await takeSet(broker, 2);
      const before = await everythingOf(broker);
      await expectCode('ERR_TASK_ID_CONFLICT', broker.replaceSet(set, newTask({ id: 'there' })));
      await expectCode('ERR_TASK_DUPLICATE', broker.replaceSet(set, newTask({ uniqueKey: 'key' })));
      await expectCode('ERR_INVALID_ARG_VALUE', broker.replaceSet(set, newTask({ queue: 'other' })));
      expect(await everythingOf(broker)).toEqual(before);
      await broker.replaceSet(set, newTask());
    });

    it('may be replaced by one with the id of one of its tasks', async ({ broker }) => {
      await add(broker, 'a', 'b');
      await broker.replaceSet(await takeSet(broker, 2), newTask({ id: 'a' }));
      expect((await broker.queueStats(QUEUE)).counts).toMatchObject({ pending: 1, aggregating: 0 });
      expect(await takeAll(broker)).toEqual(['a']);
    });

    it('can be replaced once', async ({ broker }) => {
      await add(broker, 'a');
      const set = await takeSet(broker, 1);
      await broker.replaceSet(set, newTask({ id: 'sum' }));
      await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
      await expectCode('ERR_LEASE_LOST', broker.replaceSet({ ...set, id: 'unknown' }, newTask()));
      expect(await takeAll(broker)).toEqual(['sum']);
    });

    it('that was held for too long is back in its group, which is seen, and in its order (B2)', async ({
      broker,
      advance,
      precisionMs,
    }) => {
      await add(broker, 'a', 'b', 'c', 'd');
      const [first, second] = [await takeSet(broker, 2, 2_000), await takeSet(broker, 1, 1_000)];
      expect(await broker.reclaimSets([QUEUE])).toBe(0);
      await advance(1_000 + precisionMs);
      await catchUp(broker);
      expect(await idsIn(broker, 'aggregating', GROUP)).toContain('c');
      await advance(1_000);
      await catchUp(broker);
      expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 4 }]);
      expect(await idsIn(broker, 'aggregating', GROUP)).toEqual(['a', 'b', 'c', 'd']);
      for (const set of [first, second])
        await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
      expect(idsOfSet(await takeSet(broker, 4))).toEqual(['a', 'b', 'c', 'd']);
    });

    it('that is all there was comes back to a group that was gone (B2)', async ({
      broker,
      advance,
      precisionMs,
    }) => {
      await add(broker, 'a');
      await takeSet(broker, 1, 1_000);
      expect(await broker.groups(QUEUE)).toEqual([]);
      await advance(1_000 + precisionMs);
      await catchUp(broker);
      expect(await broker.groups(QUEUE)).toEqual([{ group: GROUP, size: 1 }]);
    });

    it('is gone with its queue', async ({ broker, advance, precisionMs }) => {
      await add(broker, 'a');
      const set = await takeSet(broker, 1, 1_000);
      await broker.removeQueue(QUEUE, { force: true });
      await expectCode('ERR_LEASE_LOST', broker.replaceSet(set, newTask()));
      await broker.enqueue(newTask({ id: 'a' }));
      await advance(1_000 + precisionMs);
      await catchUp(broker);
      expect(await broker.groups(QUEUE)).toEqual([]);
    });
  });
}
