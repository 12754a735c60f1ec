import { describe, expect, test } from 'vitest';
import { DueQueue } from '../../src/timer/timer-task-list.ts';
import { NO_SLOT, TimerTable } from '../../src/timer/timer-table.ts';

function makeQueue() {
  const table = new TimerTable();
  const due = new DueQueue(table);
  const add = (sinceMs = 0): number => {
    const slot = table.allocate(() => undefined, undefined);
    due.add(slot, sinceMs);
    return slot;
  };
  return { table, due, add };
}

describe('a due queue', () => {
  test('is first in, first out', () => {
    const { due, add } = makeQueue();
    expect([due.isEmpty, due.take()]).toEqual([true, NO_SLOT]);
    const slots = [add(), add(), add()];
    expect([due.size, due.isEmpty]).toEqual([3, false]);
    expect([due.take(), due.take(), due.take(), due.take()]).toEqual([...slots, NO_SLOT]);
    expect(due.isEmpty).toBe(true);
  });

  test('has been due since its first entry fell due', () => {
    const { table, due, add } = makeQueue();
    const first = add(5);
    add(7);
    expect(due.list.expirationMs).toBe(5);
    table.discard(first);
    due.take();
    add(9);
    expect(due.list.expirationMs).toBe(9);
  });

  test('hands out nothing that came after the fence', () => {
    const { table, due, add } = makeQueue();
    const [a, b] = [add(), add()];
    due.raiseFence();
    const c = add();
    expect([due.size, due.fenceSlot === NO_SLOT]).toEqual([3, false]);
    expect(due.take()).toBe(a);
    table.discard(b);
    expect(due.take()).toBe(NO_SLOT);
    expect([due.size, due.isEmpty]).toEqual([1, false]);
    due.lowerFence();
    expect(due.fenceSlot).toBe(NO_SLOT);
    expect([due.take(), due.take()]).toEqual([c, NO_SLOT]);
  });

  test('with nothing but the fence it is empty', () => {
    const { due, add } = makeQueue();
    due.raiseFence();
    expect([due.size, due.isEmpty, due.take()]).toEqual([0, true, NO_SLOT]);
    add(8);
    expect(due.list.expirationMs).toBe(8);
    due.lowerFence();
    due.lowerFence();
    expect(due.size).toBe(1);
  });

  test('leaves the rest behind the lowered fence in order', () => {
    const { due, add } = makeQueue();
    const [a, b] = [add(), add()];
    due.raiseFence();
    expect(due.take()).toBe(a);
    const c = add();
    due.lowerFence();
    due.raiseFence();
    expect([due.take(), due.take(), due.take()]).toEqual([b, c, NO_SLOT]);
  });

  test('the fence is no entry', () => {
    const { table, due, add } = makeQueue();
    add();
    due.raiseFence();
    expect(table.size).toBe(1);
    expect(table.slotOf(table.idOf(due.fenceSlot))).toBe(NO_SLOT);
    due.lowerFence();
    expect(table.size).toBe(1);
  });
});
