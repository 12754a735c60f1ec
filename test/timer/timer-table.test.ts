import { afterEach, expect, test, vi } from 'vitest';
import { GrowableMemory } from '../../src/timer/growable-memory.ts';
import {
  type EntryCallback,
  NO_SLOT,
  PAGE_SHIFT,
  ReferencePage,
  TimerTable,
} from '../../src/timer/timer-table.ts';
import { TimerTaskList } from '../../src/timer/timer-task-list.ts';

afterEach(() => vi.unstubAllGlobals());

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

test('memory of several megabytes keeps fractions and large integers', () => {
  const memory = new GrowableMemory(64);
  new Float64Array(memory.buffer)[7] = 0.1;
  memory.grow(8_000_000);
  const values = new Float64Array(memory.buffer);
  values[999_999] = 2 ** 53 - 1;
  expect([values[7], values[999_999]]).toEqual([0.1, 2 ** 53 - 1]);
});

/** `WebAssembly.Memory` in a host that refuses to share it. */
function Memory(): never {
  throw new RangeError('could not allocate memory');
}

test.each([
  ['a host', (globalThis as { WebAssembly?: unknown }).WebAssembly],
  ['a host without WebAssembly', undefined],
  ['a host that refuses shared memory', { Memory }],
])('memory that grows keeps its content, and new bytes are zero, in %s', (_, host) => {
  vi.stubGlobal('WebAssembly', host);
  expectGrowth(new GrowableMemory(4_096), [256, 300, 512, 5_000, 65_536, 70_000, 100_000, 400_000]);
});

test('a uniform reference page keeps one callback, and forgets it with the last entry', () => {
  const one: EntryCallback = () => 1;
  const two: EntryCallback = () => 2;
  const first = 3 << PAGE_SHIFT;
  const page = new ReferencePage();
  page.set(first, one, undefined, () => false);
  page.set(first + 1, one, undefined, () => false);
  expect([page.callbackOf(first), page.callbackOf(first + 1)]).toEqual([one, one]);
  page.clear(first);
  expect(page.callbackOf(first + 1)).toBe(one);
  page.clear(first + 1);
  expect(page.callbackOf(first)).toBeUndefined();
  page.set(first, two, undefined, () => false);
  expect(page.callbackOf(first)).toBe(two);
});

/** A table whose generations begin at a random number, and that gives out slots of a list. */
function makeTable(random = Math.random(), generationBits?: number) {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(random);
  const table = new TimerTable(generationBits);
  spy.mockRestore();
  const list = new TimerTaskList(table, 1);
  const allocate = (): number => {
    const slot = table.allocate(() => undefined, undefined);
    list.add(slot);
    return slot;
  };
  return { table, allocate };
}

test.each([0, 0.5, 1 - 2 ** -27, 1 - 2 ** -53])(
  'ids are positive safe integers, also where generations wrap around (%d)',
  (random) => {
    const { table, allocate } = makeTable(random);
    const seen = new Set<number>();
    for (let i = 0; i < 4; i++) {
      const slot = allocate();
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
  const { table, allocate } = makeTable(1e-6);
  const slot = allocate();
  const id = table.idOf(slot);
  expect(table.slotOf(id)).toBe(slot);
  expect([0.25, 0.5, -0.5, 2 ** -10].map((fraction) => table.slotOf(id + fraction))).toEqual([0, 0, 0, 0]);
});

test('a slot that has been through all its generations is not used again', () => {
  const { table, allocate } = makeTable(undefined, 10);
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
