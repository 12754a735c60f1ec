import { describe, expect, test } from 'vitest';
import { QueueState } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { UniqueLocks } from '../../../../src/tasks/broker/embedded/task-store.ts';
import { newTask } from '../../../conformance/broker/support.ts';

function makeRow(queue = new QueueState('q')): TaskRow {
  const row = new TaskRow(newTask({ uniqueKey: 'key' }).message);
  queue.lists.pending.push(row);
  return row;
}

describe('a unique lock', () => {
  test('a lock has an owner until it expires', () => {
    const locks = new UniqueLocks();
    const row = makeRow();
    locks.take('key', row, 100);
    expect([locks.ownerOf('key', 99), locks.ownerOf('key', 100), locks.ownerOf('other', 0)]).toEqual([
      row,
      undefined,
      undefined,
    ]);
  });

  test('a lock is freed by its owner only', () => {
    const locks = new UniqueLocks();
    const [first, second] = [makeRow(), makeRow()];
    locks.take('key', first, 100);
    locks.take('key', second, 300);
    locks.free(first);
    expect(locks.ownerOf('key', 200)).toBe(second);
    locks.free(second);
    expect([locks.ownerOf('key', 200), locks.size]).toEqual([undefined, 0]);
  });

  test('a lock has no owner once the queue of its owner is removed', () => {
    const locks = new UniqueLocks();
    const queue = new QueueState('q');
    locks.take('key', makeRow(queue), 100);
    queue.isRemoved = true;
    expect(locks.ownerOf('key', 0)).toBeUndefined();
  });
});
