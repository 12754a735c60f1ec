import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RowsByTime } from '../../../../src/tasks/broker/embedded/rows-by-time.ts';
import { TaskRow } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import { newTask } from '../../../conformance/broker/support.ts';

let serial = 0;

function makeRow(atMs: number): TaskRow {
  const row = new TaskRow(newTask().message);
  row.atMs = atMs;
  row.serial = ++serial;
  return row;
}

const byTime = (a: TaskRow, b: TaskRow): number => a.atMs - b.atMs || a.serial - b.serial;

describe('RowsByTime', () => {
  test('rows are in the same order as in a sorted array after any additions and removals', () => {
    const action = fc.record({
      // Many rows, so that pages fill and split; few times, so that many rows share one.
      add: fc.array(fc.nat({ max: 50 }), { maxLength: 400, size: 'max' }),
      remove: fc.array(fc.nat(), { maxLength: 300, size: 'max' }),
      skip: fc.nat({ max: 1_000 }),
      count: fc.nat({ max: 600 }),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 6 }), (actions) => {
        const rows = new RowsByTime<TaskRow>();
        let model: TaskRow[] = [];
        for (const { add, remove, skip, count } of actions) {
          for (const atMs of add) {
            const row = makeRow(atMs);
            rows.add(row);
            model.push(row);
          }
          model.sort(byTime);
          for (const at of remove) {
            const row = model[at % model.length];
            if (row === undefined) break;
            rows.remove(row);
            model = model.filter((other) => other !== row);
          }
          expect(rows.first === model[0]).toBe(true);
          expect(same([...rows], model)).toBe(true);
          expect(same(rows.slice(skip, count), model.slice(skip, skip + count))).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    ['in order', (i: number) => i],
    ['backwards', (i: number) => -i],
    ['all at one moment', () => 7],
  ])('rows can be added %s and removed from either end', (_, atMsOf) => {
    const rows = new RowsByTime<TaskRow>();
    const all = Array.from({ length: 2_000 }, (__, i) => makeRow(atMsOf(i)));
    for (const row of all) rows.add(row);
    all.sort(byTime);
    expect(same([...rows], all)).toBe(true);
    for (let i = 0; i < 1_000; i++) {
      expect(rows.first === all[i]).toBe(true);
      rows.remove(all[i] as TaskRow);
      rows.remove(all[1_999 - i] as TaskRow);
    }
    expect([rows.first, [...rows], rows.slice(0, 10)]).toEqual([undefined, [], []]);
  });

  test('removing a row that is not there throws', () => {
    const rows = new RowsByTime<TaskRow>();
    expect(() => {
      rows.remove(makeRow(1));
    }).toThrow('no row with time 1');
    rows.add(makeRow(1));
    expect(() => {
      rows.remove(makeRow(1));
    }).toThrow('no row with time 1');
  });
});

/** Without looking into rows, which lead to others. */
function same(a: readonly TaskRow[], b: readonly TaskRow[]): boolean {
  return a.length === b.length && a.every((row, i) => row === b[i]);
}
