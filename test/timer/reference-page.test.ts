import { describe, expect, test } from 'vitest';
import { type EntryCallback, PAGE_SHIFT, ReferencePage } from '../../src/timer/timer-table.ts';

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

describe('a reference page', () => {
  test('keeps an argument for every slot', () => {
    const { page } = new Page();
    const argument = {};
    page.set(FIRST, one, argument, () => false);
    page.set(FIRST + 4_095, one, 0, () => false);
    expect([page.argumentOf(FIRST), page.argumentOf(FIRST + 4_095), page.argumentOf(FIRST + 1)]).toEqual([
      argument,
      0,
      undefined,
    ]);
    page.clear(FIRST);
    expect(page.argumentOf(FIRST)).toBeUndefined();
  });

  test('keeps one callback for all that share it, and forgets it with the last', () => {
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

  test('spreads at the first callback that differs, and every entry keeps its own', () => {
    const used = new Page();
    used.set(FIRST, one);
    used.set(FIRST + 1, one);
    used.clear(FIRST + 1);
    used.set(FIRST + 2, two);
    used.set(FIRST + 3, one);
    const callbacks = [0, 1, 2, 3, 4].map((i) => used.page.callbackOf(FIRST + i));
    expect(callbacks).toEqual([one, undefined, two, one, undefined]);
  });

  test('once mixed it forgets entry by entry', () => {
    const used = new Page();
    used.set(FIRST, one);
    used.set(FIRST + 1, two);
    used.clear(FIRST);
    expect([used.page.callbackOf(FIRST), used.page.callbackOf(FIRST + 1)]).toEqual([undefined, two]);
    used.clear(FIRST + 1);
    expect(used.page.callbackOf(FIRST + 1)).toBeUndefined();
    used.set(FIRST, two);
    used.set(FIRST + 1, one);
    expect([used.page.callbackOf(FIRST), used.page.callbackOf(FIRST + 1)]).toEqual([two, one]);
  });

  test('a slot may come back with another callback', () => {
    const used = new Page();
    used.set(FIRST, one);
    used.clear(FIRST);
    used.set(FIRST, two);
    used.set(FIRST + 1, one);
    expect([used.page.callbackOf(FIRST), used.page.callbackOf(FIRST + 1)]).toEqual([two, one]);
  });
});
