import { expect, test } from 'vitest';
import { ModelSide } from './purgatory-model.ts';

/** A model of which every operation whose number is in `holding` holds, and what it did. */
function makeModel(onComplete: (side: ModelSide, id: number) => void = () => undefined): {
  side: ModelSide;
  log: string[];
  holding: Set<number>;
} {
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
