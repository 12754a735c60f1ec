import { describe, expect, test } from 'vitest';
import { QueueState } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { TaskList } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { newTask } from '../../../conformance/broker/support.ts';

function makeList(...ids: readonly string[]): { list: TaskList; rows: TaskRow[] } {
  const list = new TaskList(new QueueState('q'), 'pending');
  const rows = ids.map((id) => new TaskRow(newTask({ id }).message));
  for (const row of rows) list.push(row);
  return { list, rows };
}

function idsOf(list: TaskList): string {
  const forth = [...list].map(({ message }) => message.id);
  const back: string[] = [];
  for (let row = list.tail; row !== undefined; row = row.previous) back.push(row.message.id);
  expect(back.reverse()).toEqual(forth);
  expect(list.size).toBe(forth.length);
  return forth.join('');
}

describe('a list of tasks', () => {
  test('a new list of tasks is empty', () => {
    const { list } = makeList();
    expect([idsOf(list), list.head, list.tail]).toEqual(['', undefined, undefined]);
  });

  test('a list adds rows at its end, at its beginning and after another row', () => {
    const { list, rows } = makeList('a', 'b');
    const [c, d, e] = ['c', 'd', 'e'].map((id) => new TaskRow(newTask({ id }).message)) as [
      TaskRow,
      TaskRow,
      TaskRow,
    ];
    list.unshift(c);
    list.insertAfter(rows[0], d);
    list.insertAfter(list.tail, e);
    expect(idsOf(list)).toBe('cadbe');
    expect(c.list).toBe(list);
  });

  test.each([
    ['a', 'bcd'],
    ['b', 'acd'],
    ['d', 'abc'],
  ])('a list removes its %s, which is in no list then', (id, left) => {
    const { list, rows } = makeList('a', 'b', 'c', 'd');
    const row = rows.find(({ message }) => message.id === id) as TaskRow;
    list.remove(row);
    expect(idsOf(list)).toBe(left);
    expect([row.list, row.next, row.previous]).toEqual([undefined, undefined, undefined]);
  });

  test('a list removes its only row', () => {
    const { list, rows } = makeList('a');
    list.remove(rows[0] as TaskRow);
    expect([idsOf(list), list.head, list.tail]).toEqual(['', undefined, undefined]);
  });
});

describe('the groups of a queue', () => {
  test('a group exists while it has rows', () => {
    const queue = new QueueState('q');
    const [a, b] = ['a', 'b'].map((id) => new TaskRow(newTask({ id }).message)) as [TaskRow, TaskRow];
    queue.group('g').push(a);
    queue.group('g').push(b);
    expect(queue.groups.size).toBe(1);
    queue.take(a);
    expect(queue.countAggregating()).toBe(1);
    queue.take(b);
    expect(queue.groups.size).toBe(0);
    queue.take(b);
  });
});
