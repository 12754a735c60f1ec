import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AckRanges } from '../../src/diskqueue/ack-ranges.ts';

const LAST = 60;

const additions = fc.array(
  fc.record({ from: fc.integer({ min: 0, max: LAST }), length: fc.integer({ min: 0, max: 12 }) }),
  { maxLength: 40 },
);

test('is a set of numbers, whatever is added in whatever order', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), additions, (first, all) => {
      const acks = new AckRanges(first);
      const model = new Set(Array.from({ length: first }, (_, i) => i));
      for (const { from, length } of all) {
        const before = model.size;
        for (let i = from; i < from + length; i++) model.add(i);
        expect(acks.add(from, from + length)).toBe(model.size - before);
        check(acks, model);
      }
    }),
  );
});

function check(acks: AckRanges, model: ReadonlySet<number>): void {
  let prefix = 0;
  while (model.has(prefix)) prefix++;
  expect(acks.prefix).toBe(prefix);
  expect(acks.beyond).toBe(model.size - prefix);
  expect(acks.end).toBe(Math.max(prefix, ...[...model].map((i) => i + 1)));
  for (let i = 0; i <= LAST + 13; i++) {
    expect(acks.has(i)).toBe(model.has(i));
    let next = i;
    while (model.has(next)) next++;
    expect(acks.nextAfter(i)).toBe(next);
  }
  let end = acks.prefix;
  for (const range of acks.ranges) {
    expect(range.from, 'ranges touch').toBeGreaterThan(end);
    expect(range.to).toBeGreaterThan(range.from);
    end = range.to;
  }
}

test('a million acknowledgements in order are one number', () => {
  const acks = new AckRanges(1);
  for (let i = 1; i < 1_000_000; i++) acks.add(i, i + 1);
  expect(acks).toMatchObject({ prefix: 1_000_000, ranges: [] });
});
