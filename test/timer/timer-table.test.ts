import { describe, expect, test, vi } from 'vitest';
import { NO_SLOT, TimerTable } from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';

const callback = (): void => undefined;

function slotsOf(table: TimerTable, list: TimerTaskList): number[] {
  const slots: number[] = [];
  for (let slot = list.first; slot !== list.sentinel; slot = table.next(slot)) slots.push(slot);
  return slots;
}

describe('rows', () => {
  test('an entry keeps its callback, its argument and its expiration', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const argument = {};
    const slot = table.allocate(callback, argument);
    list.add(slot);
    table.setExpiration(slot, 1e15 + 0.5);
    expect(table.callbackOf(slot)).toBe(callback);
    expect(table.argumentOf(slot)).toBe(argument);
    expect(table.expirationOf(slot)).toBe(1e15 + 0.5);
    expect([table.size, table.sentinelOf(slot)]).toEqual([1, list.sentinel]);
  });

  test('a slot is used again, the last one given back first, and holds nothing meanwhile', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const [a, b] = [table.allocate(callback, 'a'), table.allocate(callback, 'b')];
    list.add(a);
    list.add(b);
    table.discard(a);
    table.discard(b);
    expect([table.argumentOf(a), table.argumentOf(b), table.size]).toEqual([undefined, undefined, 0]);
    const { top } = table;
    expect([table.allocate(callback, 'c'), table.allocate(callback, 'd')]).toEqual([b, a]);
    expect(table.top).toBe(top);
  });

  test('nothing is lost while the table grows', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const ids: number[] = [];
    for (let i = 0; i < 70_000; i++) {
      const slot = table.allocate(callback, i);
      list.add(slot);
      table.setExpiration(slot, i * 0.5);
      ids.push(table.idOf(slot));
    }
    expect([table.size, list.size]).toEqual([70_000, 70_000]);
    const wrong = ids.filter((id, i) => {
      const slot = table.slotOf(id);
      return table.argumentOf(slot) !== i || table.expirationOf(slot) !== i * 0.5;
    });
    expect(wrong).toEqual([]);
    expect(slotsOf(table, list)).toHaveLength(70_000);
  });
});

describe('lists', () => {
  test('append, unlink and cutBefore keep the links and the count', () => {
    const table = new TimerTable();
    const [list, other] = [new TimerTaskList(table, 1), new TimerTaskList(table, 2)];
    expect([list.isEmpty, list.size]).toEqual([true, 0]);
    const slots = ['a', 'b', 'c'].map((name) => {
      const slot = table.allocate(callback, name);
      list.add(slot);
      return slot;
    }) as [number, number, number];
    expect(slotsOf(table, list)).toEqual(slots);
    expect(table.unlink(slots[1])).toBe(NO_SLOT);
    other.add(slots[1]);
    expect([slotsOf(table, list), slotsOf(table, other)]).toEqual([[slots[0], slots[2]], [slots[1]]]);
    expect([list.size, other.size]).toEqual([2, 1]);
    expect(table.unlink(slots[1])).toBe(other.sentinel);
    expect([other.isEmpty, other.size]).toEqual([true, 0]);
    table.cutBefore(list.sentinel, list.sentinel, 2);
    expect([list.isEmpty, list.size]).toEqual([true, 0]);
    expect(table.next(slots[0])).toBe(slots[2]);
    expect(table.next(slots[2])).toBe(list.sentinel);
  });

  test('prev mirrors next', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    for (let i = 0; i < 5; i++) list.add(table.allocate(callback, i));
    const forwards = slotsOf(table, list);
    const backwards: number[] = [];
    for (let slot = table.prev(list.sentinel); slot !== list.sentinel; slot = table.prev(slot)) {
      backwards.push(slot);
    }
    expect(backwards).toEqual(forwards.reverse());
  });

  test('discard tells which list it emptied', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const [a, b] = [table.allocate(callback, 'a'), table.allocate(callback, 'b')];
    list.add(a);
    list.add(b);
    expect([table.discard(a), table.discard(b)]).toEqual([NO_SLOT, list.sentinel]);
    expect(table.size).toBe(0);
  });
});

describe('ids', () => {
  test('lead back to their entry until it is released', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const slot = table.allocate(callback, 'a');
    list.add(slot);
    const id = table.idOf(slot);
    expect(table.slotOf(id)).toBe(slot);
    table.discard(slot);
    expect(table.slotOf(id)).toBe(NO_SLOT);
    list.add(table.allocate(callback, 'b'));
    expect([table.slotOf(id), table.idOf(slot) === id]).toEqual([NO_SLOT, false]);
  });

  test('name neither sentinels nor markers nor free slots', () => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    const marker = table.newMarker();
    table.append(list.sentinel, marker);
    const free = table.allocate(callback, undefined);
    list.add(free);
    table.discard(free);
    for (const slot of [list.sentinel, marker, free]) {
      expect(table.slotOf(table.idOf(slot))).toBe(NO_SLOT);
    }
    table.unlink(marker);
    expect(table.slotOf(table.idOf(marker))).toBe(NO_SLOT);
  });

  test.each([0, -1, 1, 0.5, NaN, Infinity, -Infinity, 2 ** 53, 1e300])('%d is none', (id) => {
    const table = new TimerTable();
    const list = new TimerTaskList(table, 1);
    for (let i = 0; i < 10; i++) list.add(table.allocate(callback, i));
    expect(table.slotOf(id)).toBe(NO_SLOT);
  });

  test.each([0, 0.5, 1 - 2 ** -27, 1 - 2 ** -53])(
    'are positive safe integers, also where the generations start over (%d)',
    (random) => {
      const spy = vi.spyOn(Math, 'random').mockReturnValue(random);
      const table = new TimerTable();
      spy.mockRestore();
      const list = new TimerTaskList(table, 1);
      const seen = new Set<number>();
      for (let i = 0; i < 4; i++) {
        const slot = table.allocate(callback, i);
        list.add(slot);
        const id = table.idOf(slot);
        expect(Number.isSafeInteger(id) && id > 0).toBe(true);
        expect(table.slotOf(id)).toBe(slot);
        seen.add(id);
        table.discard(slot);
      }
      expect(seen.size).toBe(4);
    },
  );

  test('a fraction beside an id that is in use is none', () => {
    const spy = vi.spyOn(Math, 'random').mockReturnValue(1e-6);
    const table = new TimerTable();
    spy.mockRestore();
    const list = new TimerTaskList(table, 1);
    const slot = table.allocate(callback, undefined);
    list.add(slot);
    const id = table.idOf(slot);
    expect(table.slotOf(id)).toBe(slot);
    expect([0.25, 0.5, -0.5, 2 ** -10].map((fraction) => table.slotOf(id + fraction))).toEqual([0, 0, 0, 0]);
  });

  test('a slot that has been through all its generations is not used again', () => {
    const table = new TimerTable(10);
    const list = new TimerTaskList(table, 1);
    const allocate = (): number => {
      const slot = table.allocate(callback, undefined);
      list.add(slot);
      return slot;
    };
    const first = allocate();
    const ids = [];
    for (let slot = first; slot === first; slot = allocate()) {
      ids.push(table.idOf(slot));
      table.discard(slot);
    }
    expect(new Set(ids).size).toBe(2 ** 10);
    expect(ids.filter((id) => table.slotOf(id) !== NO_SLOT)).toEqual([]);
    expect(table.size).toBe(1);
  });
});
