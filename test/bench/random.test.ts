import { expect, test } from 'vitest';
import { SeededRandom } from '../../bench/lib/random.ts';

const DRAWS = 100_000;

function draw(seed: number, next: (random: SeededRandom) => number): number[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: DRAWS }, () => next(random));
}

function momentsOf(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}

test('equal seeds give equal numbers, and different seeds give different ones', () => {
  const [first, again, other] = [new SeededRandom(1), new SeededRandom(1), new SeededRandom(2)];
  const three = (random: SeededRandom): number[] => [random.next(), random.nextGaussian(), random.nextInt(9)];
  expect(three(first)).toEqual(three(again));
  expect(three(first)).not.toEqual(three(other));
});

test('uniform random numbers fill [0, 1)', () => {
  const values = draw(7, (random) => random.next());
  expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
  const { mean, deviation } = momentsOf(values);
  expect(mean).toBeCloseTo(0.5, 2);
  expect(deviation).toBeCloseTo(Math.sqrt(1 / 12), 2);
});

test('random integers reach every value below their bound and no other', () => {
  const seen = new Set(draw(7, (random) => random.nextInt(5)));
  expect([...seen].sort()).toEqual([0, 1, 2, 3, 4]);
});

test('normal random numbers have mean 0, deviation 1, and a quarter of them is above 0.6745', () => {
  const values = draw(7, (random) => random.nextGaussian());
  const { mean, deviation } = momentsOf(values);
  expect(mean).toBeCloseTo(0, 1);
  expect(deviation).toBeCloseTo(1, 1);
  expect(values.filter((value) => value > 0.67449).length / DRAWS).toBeCloseTo(0.25, 2);
});
