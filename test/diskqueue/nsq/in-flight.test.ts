import { expect, it } from 'vitest';
import { InFlight, type DonePrefix } from '../../../src/diskqueue/nsq/in-flight.ts';

const at = (offset: number): DonePrefix['end'] => ({ number: 7, offset });

function done(offset: number, records: number): DonePrefix {
  return { end: at(offset), records };
}

it('gives up what is acknowledged, up to the first that is not', () => {
  const inFlight = new InFlight();
  const [a, b, c, d] = [10, 20, 30, 40].map((end) => inFlight.add(at(end))) as [
    number,
    number,
    number,
    number,
  ];
  expect(inFlight.acknowledge(b)).toBe(true);
  expect(inFlight.acknowledge(d)).toBe(true);
  expect(inFlight.takeDone()).toBeUndefined();
  expect(inFlight.acknowledge(a)).toBe(true);
  expect(inFlight.takeDone()).toEqual(done(20, 2));
  expect(inFlight.takeDone()).toBeUndefined();
  expect(inFlight.acknowledge(c)).toBe(true);
  expect(inFlight.takeDone()).toEqual(done(40, 2));
});

it('does so in whatever order', () => {
  const orders = permutations([1, 2, 3, 4, 5]);
  for (const order of orders) {
    const inFlight = new InFlight();
    for (const end of [10, 20, 30, 40, 50]) inFlight.add(at(end));
    const acked = new Set<number>();
    let taken = 0;
    for (const sequence of order) {
      expect(inFlight.acknowledge(sequence)).toBe(true);
      acked.add(sequence);
      let prefix = taken;
      while (acked.has(prefix + 1)) prefix++;
      const expected = prefix > taken ? done(prefix * 10, prefix - taken) : undefined;
      expect(inFlight.takeDone(), `${order.join()} at ${sequence}`).toEqual(expected);
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
  const inFlight = new InFlight();
  const sequences = Array.from({ length: 5000 }, (_, i) => inFlight.add(at(i)));
  for (const sequence of sequences) expect(inFlight.acknowledge(sequence)).toBe(true);
  expect(inFlight.takeDone()).toEqual(done(4999, 5000));
  for (const sequence of sequences) expect(inFlight.acknowledge(sequence)).toBe(false);
  const next = inFlight.add(at(5000));
  expect(next).toBe(sequences.length + 1);
  expect(inFlight.acknowledge(next)).toBe(true);
});

it('passes damage, which is no record, with what was before it', () => {
  const inFlight = new InFlight();
  inFlight.addDamage(at(5));
  expect(inFlight.takeDone()).toEqual(done(5, 0));
  const a = inFlight.add(at(10));
  inFlight.addDamage(at(20));
  expect(inFlight.takeDone()).toBeUndefined();
  inFlight.acknowledge(a);
  expect(inFlight.takeDone()).toEqual(done(20, 1));
  inFlight.addDamage(at(30));
  expect(inFlight.takeDone()).toEqual(done(30, 0));
});

it('passes damage behind what is acknowledged, and waits', () => {
  const inFlight = new InFlight();
  const [a, b] = [inFlight.add(at(10)), inFlight.add(at(20))];
  inFlight.acknowledge(b);
  inFlight.addDamage(at(30));
  const c = inFlight.add(at(40));
  expect(inFlight.takeDone()).toBeUndefined();
  inFlight.acknowledge(a);
  expect(inFlight.takeDone()).toEqual(done(30, 2));
  inFlight.acknowledge(c);
  expect(inFlight.takeDone()).toEqual(done(40, 1));
});

it('knows nothing of earlier messages when it was cleared', () => {
  const inFlight = new InFlight();
  const old = [inFlight.add(at(10)), inFlight.add(at(20))];
  inFlight.acknowledge(old[1] as number);
  inFlight.clear();
  const next = inFlight.add(at(10));
  for (const sequence of old) expect(inFlight.acknowledge(sequence)).toBe(false);
  expect(inFlight.takeDone()).toBeUndefined();
  expect(inFlight.acknowledge(next)).toBe(true);
  expect(inFlight.takeDone()).toEqual(done(10, 1));
});
