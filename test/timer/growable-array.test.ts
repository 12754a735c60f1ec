import { afterEach, describe, expect, test, vi } from 'vitest';
import { GrowableMemory } from '../../src/timer/growable-memory.ts';

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

describe('a growable array', () => {
  test('starts with zeroes', () => {
    const values = new Float64Array(new GrowableMemory(2_048).buffer);
    expect(values.length).toBeGreaterThanOrEqual(256);
    expect(values.every((value) => value === 0)).toBe(true);
  });

  test('keeps what it holds, and what is new is zero', () => {
    expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE);
  });

  test('holds fractions', () => {
    const memory = new GrowableMemory(64);
    new Float64Array(memory.buffer)[7] = 0.1;
    memory.grow(8_000_000);
    const values = new Float64Array(memory.buffer);
    values[999_999] = 2 ** 53 - 1;
    expect([values[7], values[999_999]]).toEqual([0.1, 2 ** 53 - 1]);
  });

  test('asked for less than it has, it does nothing', () => {
    const memory = new GrowableMemory(4_096);
    const { buffer } = memory;
    memory.grow(160);
    expect(memory.buffer).toBe(buffer);
  });

  test('works in a host without WebAssembly', () => {
    vi.stubGlobal('WebAssembly', undefined);
    expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE);
  });

  test('works in a host that refuses the memory', () => {
    const refuse = (): never => {
      throw new RangeError('could not allocate memory');
    };
    class Memory {
      readonly buffer = refuse();
    }
    vi.stubGlobal('WebAssembly', { Memory });
    expectGrowth(new GrowableMemory(4_096), SMALL_TO_LARGE);
  });
});
