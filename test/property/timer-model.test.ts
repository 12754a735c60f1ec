import { expect, test } from 'vitest';
import { compareEntries, placeInModel, type WheelShape } from './timer-model.ts';

const shape: WheelShape = { tickMs: 1, wheelSize: 4, rounding: 'up' };

/** The model is judged by hand-made cases, or it would only be another implementation. */
test('the model knows the way of an entry down the wheels', () => {
  expect(placeInModel(shape, 2, 9, 0).path).toEqual([{ level: 1, atMs: 9 }]);
  expect(placeInModel(shape, 5, 9, 0).path.map(({ atMs }) => atMs)).toEqual([9, 12]);
  expect(placeInModel(shape, 30, 9, 0).path.map(({ level, atMs }) => [level, atMs])).toEqual([
    [3, 9],
    [2, 32],
    [1, 36],
  ]);
});

test('the model rounds as the contract says', () => {
  const coarse = { ...shape, tickMs: 10 };
  expect(placeInModel(coarse, 5, 1_000, 0).dueMs).toBe(1_010);
  expect(placeInModel(coarse, 10, 1_000, 0).dueMs).toBe(1_010);
  expect(placeInModel({ ...coarse, rounding: 'down' }, 29, 1_000, 0).dueMs).toBe(1_020);
  expect(placeInModel({ ...coarse, rounding: 'down' }, 9, 1_000.5, 0)).toMatchObject({
    dueMs: 1_000.5,
    path: [],
  });
});

test('the model orders by expiration, then by arrival', () => {
  const a = placeInModel(shape, 10, 0, 0);
  const c = placeInModel(shape, 10, 0, 1);
  expect(compareEntries(a, c)).toBeLessThan(0);
  expect(compareEntries(a, placeInModel(shape, 2, 8, 2))).toBeLessThan(0);
  expect(compareEntries(a, placeInModel(shape, 3, 7, 2))).toBeGreaterThan(0);
  expect(compareEntries(a, placeInModel(shape, -1, 10, 2))).toBeLessThan(0);
  expect(compareEntries(a, placeInModel(shape, -1, 9.5, 2))).toBeGreaterThan(0);
});
