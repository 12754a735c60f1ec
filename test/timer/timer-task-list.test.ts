import { expect, test } from 'vitest';
import { TimerTable } from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';

test('a new list is empty, waits for nothing and is not queued', () => {
  const list = new TimerTaskList(new TimerTable(), 20);
  expect(list).toMatchObject({ size: 0, isEmpty: true, expirationMs: -1, isQueued: false, tickMs: 20 });
});

test('entries are linked at the tail, and counted', () => {
  const table = new TimerTable();
  const list = new TimerTaskList(table, 1);
  const [a, b] = [table.allocate(() => undefined, 'a'), table.allocate(() => undefined, 'b')];
  list.add(a);
  list.add(b);
  expect([list.first, table.next(a), list.size, list.isEmpty]).toEqual([a, b, 2, false]);
});

test('two lists of one table have nothing in common', () => {
  const table = new TimerTable();
  const [one, two] = [new TimerTaskList(table, 1), new TimerTaskList(table, 1)];
  one.add(table.allocate(() => undefined, undefined));
  expect([one.size, two.size, one.sentinel === two.sentinel]).toEqual([1, 0, false]);
});
