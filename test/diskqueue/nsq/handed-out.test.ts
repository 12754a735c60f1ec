import { expect, it } from 'vitest';
import { HandedOut } from '../../../src/diskqueue/nsq/handed-out.ts';

function takeAll(handedOut: HandedOut): number[] {
  const ends: number[] = [];
  for (let done = handedOut.takeDone(); done !== undefined; done = handedOut.takeDone()) ends.push(done.end);
  return ends;
}

it('gives up what is acknowledged, up to the first that is not', () => {
  const handedOut = new HandedOut();
  const [a, b, c, d] = [10, 20, 30, 40].map((end) => handedOut.add(end)) as [number, number, number, number];
  expect(handedOut.acknowledge(b)).toBe(true);
  expect(handedOut.acknowledge(d)).toBe(true);
  expect(takeAll(handedOut)).toEqual([]);
  expect(handedOut.acknowledge(a)).toBe(true);
  expect(takeAll(handedOut)).toEqual([10, 20]);
  expect(handedOut.acknowledge(c)).toBe(true);
  expect(takeAll(handedOut)).toEqual([30, 40]);
});

it('knows what was acknowledged before, also when it is forgotten', () => {
  const handedOut = new HandedOut();
  const sequences = Array.from({ length: 5000 }, (_, i) => handedOut.add(i));
  for (const sequence of sequences) expect(handedOut.acknowledge(sequence)).toBe(true);
  expect(takeAll(handedOut)).toHaveLength(5000);
  for (const sequence of sequences) expect(handedOut.acknowledge(sequence)).toBe(false);
  const next = handedOut.add(5000);
  expect(next).toBe(sequences.length + 1);
  expect(handedOut.acknowledge(next + 1)).toBe(false);
  expect(handedOut.acknowledge(next)).toBe(true);
});

it('passes damage, which is no record', () => {
  const handedOut = new HandedOut();
  const a = handedOut.add(10);
  handedOut.addDamage(20);
  expect(handedOut.takeDone()).toBeUndefined();
  handedOut.acknowledge(a);
  expect(handedOut.takeDone()).toMatchObject({ end: 10, records: 1 });
  expect(handedOut.takeDone()).toMatchObject({ end: 20, records: 0 });
});

it('knows nothing of earlier messages when it was cleared', () => {
  const handedOut = new HandedOut();
  const old = [handedOut.add(10), handedOut.add(20)];
  handedOut.clear();
  const next = handedOut.add(10);
  for (const sequence of old) expect(handedOut.acknowledge(sequence)).toBe(false);
  expect(handedOut.takeDone()).toBeUndefined();
  expect(handedOut.acknowledge(next)).toBe(true);
  expect(takeAll(handedOut)).toEqual([10]);
});
