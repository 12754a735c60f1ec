import { describe, expect, it } from 'vitest';
import { QueuePicker } from '../../../src/tasks/server/processor.ts';

/** What each queue is given over some rounds. */
function deal(picker: QueuePicker, places: number, rounds: number): Record<string, number> {
  const given: Record<string, number> = {};
  for (let i = 0; i < rounds; i++) {
    for (const { queue, limit } of picker.pick(places)) given[queue] = (given[queue] ?? 0) + limit;
  }
  return given;
}

describe('weighted', () => {
  const weights = { critical: 6, default: 3, low: 1 };

  it.each([1, 2, 3, 7, 10, 23])('the shares of queues hold with %d slots a round', (places) => {
    expect(deal(new QueuePicker(weights, false), places, 10)).toEqual({
      critical: 6 * places,
      default: 3 * places,
      low: places,
    });
  });

  it('single slots are distributed smoothly', () => {
    const picker = new QueuePicker({ a: 2, b: 1 }, false);
    expect([1, 2, 3, 4, 5, 6].map(() => picker.pick(1)[0]?.queue).join('')).toBe('abaaba');
  });

  it('common factors of priorities make no difference', () => {
    const picker = new QueuePicker({ a: 2_000_000, b: 1_000_000 }, false);
    expect(deal(picker, 3, 1)).toEqual({ a: 2, b: 1 });
  });

  it('empty queues get no slots, and the others share them', () => {
    const picker = new QueuePicker(weights, false);
    picker.markEmpty('critical');
    expect(deal(picker, 4, 10)).toEqual({ default: 30, low: 10 });
  });

  it('a queue that was empty neither gains nor loses slots', () => {
    const picker = new QueuePicker({ a: 1, b: 1 }, false);
    picker.markEmpty('a');
    deal(picker, 1, 100);
    picker.markReady('a');
    expect(deal(picker, 1, 10)).toEqual({ a: 5, b: 5 });
  });

  it('every round distributes all slots', () => {
    const picker = new QueuePicker({ a: 5, b: 3, c: 3 }, false);
    for (let places = 1; places < 50; places++) {
      expect(picker.pick(places).reduce((sum, { limit }) => sum + limit, 0)).toBe(places);
    }
  });
});

describe('strict', () => {
  const picker = new QueuePicker({ low: 1, critical: 6, default: 3 }, true);

  it('strict priority gives all slots to the first queue that may have tasks', () => {
    expect(picker.pick(5)).toEqual([{ queue: 'critical', limit: 5 }]);
    picker.markEmpty('critical');
    expect(picker.pick(5)).toEqual([{ queue: 'default', limit: 5 }]);
    picker.markEmpty('default');
    picker.markEmpty('low');
    expect(picker.pick(5)).toEqual([]);
    picker.markAllReady();
    expect(picker.pick(5)).toEqual([{ queue: 'critical', limit: 5 }]);
  });
});

describe('queues that may have tasks', () => {
  it('every queue may have tasks at first', () => {
    expect(new QueuePicker({ a: 1 }, false).hasReady).toBe(true);
  });

  it('only served queues can be marked ready', () => {
    const picker = new QueuePicker({ a: 1 }, false);
    picker.markEmpty('a');
    expect(picker.markReady('b')).toBe(false);
    expect(picker.hasReady).toBe(false);
    expect(picker.markReady('a')).toBe(true);
    expect(picker.pick(0)).toEqual([]);
    expect(picker.pick(2)).toEqual([{ queue: 'a', limit: 2 }]);
  });
});
