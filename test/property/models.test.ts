import { expect, test } from 'vitest';
import { ModelSide } from './purgatory-model.ts';
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

/** A model of which every operation whose number is in `holding` holds, and what it did. */
function makeModel(onComplete: (side: ModelSide, id: number) => void = () => undefined) {
  const log: string[] = [];
  const holding = new Set<number>();
  const side: ModelSide = new ModelSide({
    onTry: (id) => {
      log.push(`try ${id}`);
      return holding.has(id);
    },
    onComplete: (id, reason) => {
      log.push(`${id} ${reason}`);
      onComplete(side, id);
    },
    onExpiration: (id) => log.push(`${id} onExpiration`),
    onError: (id) => log.push(`error of ${id}`),
    onSettled: (id, outcome) => log.push(`${id} ${outcome}`),
  });
  return { side, log, holding };
}

/** The model is judged by hand-made cases, or it would only be another implementation. */
test('the model tries twice, watches, and starts the timeout', () => {
  const { side, log } = makeModel();
  side.create(0, 10);
  expect(side.watch(0, 0, ['a', 'b', 'a'])).toBe(false);
  expect(side.gauges()).toEqual([2, 1, 2, 0, 0, 0, 1]);
  side.pass(9);
  expect(log).toEqual(['try 0', 'try 0']);
  side.pass(1);
  expect(log.slice(2)).toEqual(['0 expired', '0 onExpiration']);
  expect(side.gauges()).toEqual([0, 0, 0, 0, 0, 0, 0]);
});

test('the model checks in order, and what is triggered meanwhile afterwards', () => {
  const returned: number[] = [];
  const { side, log, holding } = makeModel((self, id) => id === 0 && returned.push(self.check(0, 'b')));
  for (const id of [0, 1, 2]) side.create(id, Infinity);
  side.watch(0, 0, ['a']);
  side.watch(1, 0, ['b']);
  side.watch(2, 0, ['a']);
  for (const id of [0, 1, 2]) holding.add(id);
  log.length = 0;
  expect(side.check(0, 'a')).toBe(3);
  expect(returned).toEqual([0]);
  expect(log).toEqual(['try 0', '0 tried', 'try 2', '2 tried', 'try 1', '1 tried']);
});

test('the model expires in order: what is overdue before what was due when it came', () => {
  const { side, log } = makeModel();
  for (const [id, delayMs] of [10, 5, 10, 0].entries()) side.create(id, delayMs);
  for (const id of [0, 1, 2]) side.watch(id, 1, ['a']);
  side.pass(4);
  side.watch(3, 1, ['a']);
  log.length = 0;
  side.pass(6);
  expect(log.filter((line) => line.endsWith('expired'))).toEqual([
    '3 expired',
    '1 expired',
    '0 expired',
    '2 expired',
  ]);
});

test('the model cancels and closes in watch order, and says how waits ended', () => {
  const { side, log } = makeModel();
  side.create(0, 10);
  side.watch(0, 0, ['b']);
  side.wait(1, 0, ['a', 'b'], 10);
  side.create(2, 10);
  side.watch(2, 0, ['a']);
  side.wait(3, 0, ['c'], 10);
  log.length = 0;
  expect(side.cancelForKey(0, 'b')).toEqual([0]);
  expect(side.close(0, 'complete')).toEqual([2]);
  expect(log).toEqual(['1 ERR_OPERATION_CANCELLED', '2 closed', '3 ERR_PURGATORY_CLOSED']);
  expect(() => side.watch(0, 0, ['a'])).toThrow('ERR_PURGATORY_CLOSED');
  expect([side.check(0, 'a'), side.cancelForKey(0, 'a'), side.close(0, 'drop')]).toEqual([0, [], []]);
});
