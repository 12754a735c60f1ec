import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrowableArray } from '../../src/timer/growable-array.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Grows step by step, writes to every new element, and looks at all of it in between. */
function expectGrowth(array: GrowableArray<Int32Array>, steps: readonly number[]): void {
  let written = 0;
  for (const rows of steps) {
    array.grow(rows);
    const { values } = array;
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

describe('a growable array', () => {
  test('starts with zeroes', () => {
    const array = new GrowableArray(Float64Array, 1, 256);
    expect(array.values.length).toBeGreaterThanOrEqual(256);
    expect(array.values.every((value) => value === 0)).toBe(true);
  });

  test('keeps what it holds, and what is new is zero', () => {
    expectGrowth(new GrowableArray(Int32Array, 4, 256), SMALL_TO_LARGE);
  });

  test('holds fractions', () => {
    const array = new GrowableArray(Float64Array, 1, 8);
    array.values[7] = 0.1;
    array.grow(1_000_000);
    array.values[999_999] = 2 ** 53 - 1;
    expect([array.values[7], array.values[999_999]]).toEqual([0.1, 2 ** 53 - 1]);
  });

  test('asked for less than it has, it does nothing', () => {
    const array = new GrowableArray(Int32Array, 4, 256);
    array.values[1_023] = 5;
    array.grow(10);
    expect(array.values[1_023]).toBe(5);
  });

  test('works in a host without WebAssembly', () => {
    vi.stubGlobal('WebAssembly', undefined);
    expectGrowth(new GrowableArray(Int32Array, 4, 256), SMALL_TO_LARGE);
  });

  test('works in a host that refuses the memory', () => {
    const refuse = (): never => {
      throw new RangeError('could not allocate memory');
    };
    class Memory {
      readonly buffer = refuse();
    }
    vi.stubGlobal('WebAssembly', { Memory });
    expectGrowth(new GrowableArray(Int32Array, 4, 256), SMALL_TO_LARGE);
  });
});
