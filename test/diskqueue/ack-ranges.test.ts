import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Random } from './random.ts';
import { AckRanges, UNKNOWN_BYTES } from '../../src/diskqueue/ack-ranges.ts';

const LAST = 60;

const additions = fc.array(
  fc.record({ from: fc.integer({ min: 0, max: LAST }), length: fc.integer({ min: 0, max: 12 }) }),
  { maxLength: 40 },
);

test('acknowledged ranges behave like a set of numbers, whatever is added in whatever order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), additions, (first, all) => {
      const acks = new AckRanges(first);
      const model = new Set(Array.from({ length: first }, (_, i) => i));
      for (const { from, length } of all) {
        const before = model.size;
        for (let i = from; i < from + length; i++) model.add(i);
        expect(acks.add(from, from + length, bytesOf(from, from + length))).toBe(model.size - before);
        check(acks, model);
      }
    }),
  );
});

/** Every message has other bytes than the others. */
function bytesOf(from: number, to: number): number {
  let bytes = 0;
  for (let i = from; i < to; i++) bytes += 100 + i;
  return bytes;
}

function nextOutside(model: ReadonlySet<number>, from: number): number {
  let next = from;
  while (model.has(next)) next++;
  return next;
}

function check(acks: AckRanges, model: ReadonlySet<number>): void {
  const prefix = nextOutside(model, 0);
  expect(acks.prefix).toBe(prefix);
  expect(acks.count).toBe(model.size);
  expect(acks.end).toBe(Math.max(prefix, ...[...model].map((i) => i + 1)));
  const numbers = Array.from({ length: LAST + 14 }, (_, i) => i);
  expect(numbers.filter((i) => acks.has(i))).toEqual(numbers.filter((i) => model.has(i)));
  expect(numbers.map((i) => acks.nextAfter(i))).toEqual(numbers.map((i) => nextOutside(model, i)));
  let end = acks.prefix;
  for (const range of acks.ranges) {
    expect(range.from, 'ranges touch').toBeGreaterThan(end);
    expect(range.to).toBeGreaterThan(range.from);
    if (!Number.isNaN(range.bytes)) expect(range.bytes).toBe(bytesOf(range.from, range.to));
    end = range.to;
  }
}

test('a million acknowledgements in order take one number', () => {
  const acks = new AckRanges(1);
  for (let i = 1; i < 1_000_000; i++) acks.add(i, i + 1, 5);
  expect(acks).toMatchObject({ prefix: 1_000_000, ranges: [] });
});

const acks = (): AckRanges => {
  const made = new AckRanges(1);
  made.add(5, 7, 20);
  made.add(10, 11, 4);
  return made;
};

test('the bytes of a range are the sum of the bytes of its messages', () => {
  const made = acks();
  made.add(7, 10, 9);
  expect(made.ranges).toEqual([{ from: 5, to: 11, bytes: 33 }]);
  made.add(3, 5, 1);
  made.add(13, 14, 2);
  expect(made.bytesBeyond).toBe(36);
  made.add(1, 3, 50);
  expect(made).toMatchObject({ prefix: 11, bytesBeyond: 2 });
});

test('the bytes of a range stay the same if no message is new', () => {
  const made = acks();
  made.add(5, 7, 1_000);
  made.add(6, 7, 1_000);
  expect(made).toMatchObject({ bytesBeyond: 24, ranges: { length: 2 } });
});

test('the bytes of a range are unknown if only some messages are new, until the prefix has reached them', () => {
  const made = acks();
  made.add(6, 8, 30);
  expect(made.ranges).toEqual([
    { from: 5, to: 8, bytes: NaN },
    { from: 10, to: 11, bytes: 4 },
  ]);
  made.add(10, 11, UNKNOWN_BYTES);
  expect(made.ranges[1]).toEqual({ from: 10, to: 11, bytes: NaN });
  made.add(1, 9, 1);
  made.add(9, 10, 1);
  expect(made).toMatchObject({ prefix: 11, bytesBeyond: 0 });
});

const COUNT = 20_000;
const random = new Random(1);
const orders: Record<string, (i: number) => number> = {
  ascending: (i) => i,
  descending: (i) => COUNT - 1 - i,
  'from both ends': (i) => (i % 2 === 0 ? i / 2 : COUNT - (i + 1) / 2),
  'by a stride': (i) => (i * 7_919) % COUNT,
};

/** Returns how many ranges are on the longest path of the tree, the cost of `add` at the worst: `nextAfter` reads those above a range. */
function heightOf(acks: AckRanges): number {
  let reads = 0;
  const { ranges } = acks;
  const starts = ranges.map(({ from }) => from);
  for (const [i, range] of ranges.entries()) {
    const get = (): number | undefined => {
      reads++;
      return starts[i];
    };
    Object.defineProperty(range, 'from', { get, configurable: true });
  }
  const heights = starts.map((from) => {
    reads = 0;
    acks.nextAfter(from);
    return reads;
  });
  return Math.max(...heights);
}

test.each(Object.keys(orders))(
  'twenty thousand acknowledgements out of order (%s) are O(log n) each',
  (name) => {
    const acks = new AckRanges(1);
    for (let i = 0; i < COUNT; i++) {
      const sequence = 2 + 2 * (orders[name] as (i: number) => number)(i);
      acks.add(sequence, sequence + 1, 1);
      if (i % 4_000 === 0) expect(heightOf(acks)).toBeLessThan(4 * Math.log2(i + 2));
    }
    expect(heightOf(acks)).toBeLessThan(4 * Math.log2(COUNT));
    expect(acks.ranges).toHaveLength(COUNT);
    while (acks.ranges.length > 0) {
      const [{ from } = { from: 0 }] = acks.ranges;
      acks.add(acks.prefix, from + 1 + random.below(COUNT), UNKNOWN_BYTES);
    }
    expect(acks.prefix).toBeGreaterThan(2 * COUNT);
  },
);
