import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrowableMemory } from '../../src/timer/growable-memory.ts';
import {
  type EntryCallback,
  NO_SLOT,
  PAGE_SHIFT,
  ReferencePage,
  TimerTable,
} from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { slotsOf } from './support/timers.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Grows step by step, writes to every new element, and looks at all of it in between. */
function expectGrowth(memory: GrowableMemory, steps: readonly number[]): void {
  let written = 0;
  for (const rows of steps) {
    memory.grow(rows * 16);
    const values = new Int32Array(memory.buffer);
    expect(values.length).toBeGreaterThanOrEqual(rows * 4);
    for (let i = written; i < rows * 4; i++) {
      if (values[i] !== 0) throw new Error(`element ${i} is new and not zero`);
      values[i] = i * 3;
    }
    written = rows * 4;
    for (let i = 0; i < written; i++) if (values[i] !== i * 3) throw new Error(`element ${i} was lost`);
  }
}

const SMALL_TO_LARGE = [256, 300, 512, 5_000, 65_536, 70_000, 100_000, 400_000];

test('growing memory keeps its content, and new bytes are zero', () =>
  expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE));

test('memory of several megabytes keeps fractions and large integers', () => {
  const memory = new GrowableMemory(64);
  new Float64Array(memory.buffer)[7] = 0.1;
  memory.grow(8_000_000);
  const values = new Float64Array(memory.buffer);
  values[999_999] = 2 ** 53 - 1;
  expect([values[7], values[999_999]]).toEqual([0.1, 2 ** 53 - 1]);
});

test('memory grows in a host without WebAssembly', () => {
  vi.stubGlobal('WebAssembly', undefined);
  expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE);
});

test('memory grows in a host that refuses shared memory', () => {
  const refuse = (): never => {
    throw new RangeError('could not allocate memory');
  };
  class Memory {
    readonly buffer = refuse();
  }
  vi.stubGlobal('WebAssembly', { Memory });
  expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE);
});

const one: EntryCallback = () => 1;
const two: EntryCallback = () => 2;
const FIRST = 3 << PAGE_SHIFT;

/** A page and the slots that are in use in it, kept like the table keeps them. */
class Page {
  readonly page = new ReferencePage();
  readonly used = new Set<number>();

  set(slot: number, callback: EntryCallback, argument?: unknown): void {
    this.page.set(slot, callback, argument, (other) => this.used.has(other));
    this.used.add(slot);
  }

  clear(slot: number): void {
    this.used.delete(slot);
    this.page.clear(slot);
  }
}

test('a uniform reference page keeps one callback, and forgets it with the last entry', () => {
  const { page, ...rest } = new Page();
  expect(rest.used.size).toBe(0);
  page.set(FIRST, one, undefined, () => false);
  page.set(FIRST + 1, one, undefined, () => false);
  expect([page.callbackOf(FIRST), page.callbackOf(FIRST + 1)]).toEqual([one, one]);
  page.clear(FIRST);
  expect(page.callbackOf(FIRST + 1)).toBe(one);
  page.clear(FIRST + 1);
  expect(page.callbackOf(FIRST)).toBeUndefined();
  page.set(FIRST, two, undefined, () => false);
  expect(page.callbackOf(FIRST)).toBe(two);
});

const callback = (): void => undefined;

test('a slot is used again, the one released last first, and holds nothing meanwhile', () => {
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

test('no entry is lost while the table grows', () => {
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

test('append, unlink and cutBefore keep the links and the count of a list', () => {
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

describe('ids', () => {
  test('no id refers to a sentinel, a marker or a free slot', () => {
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

  test.each([0, 0.5, 1 - 2 ** -27, 1 - 2 ** -53])(
    'ids are positive safe integers, also where generations wrap around (%d)',
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

  test('a fraction beside a valid id is not an id', () => {
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
