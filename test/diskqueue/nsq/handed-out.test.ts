import { expect, it } from 'vitest';
import { HandedOut, type Done } from '../../../src/diskqueue/nsq/handed-out.ts';

const at = (offset: number): Done['end'] => ({ number: 7, offset });

function done(offset: number, records: number): Done {
  return { end: at(offset), records };
}

it('gives up what is acknowledged, up to the first that is not', () => {
  const handedOut = new HandedOut();
  const [a, b, c, d] = [10, 20, 30, 40].map((end) => handedOut.add(at(end))) as [
    number,
    number,
    number,
    number,
  ];
  expect(handedOut.acknowledge(b)).toBe(true);
  expect(handedOut.acknowledge(d)).toBe(true);
  expect(handedOut.takeDone()).toBeUndefined();
  expect(handedOut.acknowledge(a)).toBe(true);
  expect(handedOut.takeDone()).toEqual(done(20, 2));
  expect(handedOut.takeDone()).toBeUndefined();
  expect(handedOut.acknowledge(c)).toBe(true);
  expect(handedOut.takeDone()).toEqual(done(40, 2));
});

it('does so in whatever order', () => {
  const orders = permutations([1, 2, 3, 4, 5]);
  for (const order of orders) {
    const handedOut = new HandedOut();
    for (const end of [10, 20, 30, 40, 50]) handedOut.add(at(end));
    const acked = new Set<number>();
    let taken = 0;
    for (const sequence of order) {
      expect(handedOut.acknowledge(sequence)).toBe(true);
      acked.add(sequence);
      let prefix = taken;
      while (acked.has(prefix + 1)) prefix++;
      const expected = prefix > taken ? done(prefix * 10, prefix - taken) : undefined;
      expect(handedOut.takeDone(), `${order.join()} at ${sequence}`).toEqual(expected);
      taken = prefix;
    }
  }
});

function permutations(list: readonly number[]): number[][] {
  if (list.length === 0) return [[]];
  return list.flatMap((one) =>
    permutations(list.filter((other) => other !== one)).map((rest) => [one, ...rest]),
  );
}

it('knows what was acknowledged before, also when it is forgotten', () => {
  const handedOut = new HandedOut();
  const sequences = Array.from({ length: 5000 }, (_, i) => handedOut.add(at(i)));
  for (const sequence of sequences) expect(handedOut.acknowledge(sequence)).toBe(true);
  expect(handedOut.takeDone()).toEqual(done(4999, 5000));
  for (const sequence of sequences) expect(handedOut.acknowledge(sequence)).toBe(false);
  const next = handedOut.add(at(5000));
  expect(next).toBe(sequences.length + 1);
  expect(handedOut.acknowledge(next)).toBe(true);
});

it('passes damage, which is no record, with what was before it', () => {
  const handedOut = new HandedOut();
  handedOut.addDamage(at(5));
  expect(handedOut.takeDone()).toEqual(done(5, 0));
  const a = handedOut.add(at(10));
  handedOut.addDamage(at(20));
  expect(handedOut.takeDone()).toBeUndefined();
  handedOut.acknowledge(a);
  expect(handedOut.takeDone()).toEqual(done(20, 1));
  handedOut.addDamage(at(30));
  expect(handedOut.takeDone()).toEqual(done(30, 0));
});

it('passes damage behind what is acknowledged, and waits', () => {
  const handedOut = new HandedOut();
  const [a, b] = [handedOut.add(at(10)), handedOut.add(at(20))];
  handedOut.acknowledge(b);
  handedOut.addDamage(at(30));
  const c = handedOut.add(at(40));
  expect(handedOut.takeDone()).toBeUndefined();
  handedOut.acknowledge(a);
  expect(handedOut.takeDone()).toEqual(done(30, 2));
  handedOut.acknowledge(c);
  expect(handedOut.takeDone()).toEqual(done(40, 1));
});

it('knows nothing of earlier messages when it was cleared', () => {
  const handedOut = new HandedOut();
  const old = [handedOut.add(at(10)), handedOut.add(at(20))];
  handedOut.acknowledge(old[1] as number);
  handedOut.clear();
  const next = handedOut.add(at(10));
  for (const sequence of old) expect(handedOut.acknowledge(sequence)).toBe(false);
  expect(handedOut.takeDone()).toBeUndefined();
  expect(handedOut.acknowledge(next)).toBe(true);
  expect(handedOut.takeDone()).toEqual(done(10, 1));
});
