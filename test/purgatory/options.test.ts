import { DelayedOperation, DelayedOperationPurgatory, ManualClock, type PurgatoryOptions } from 'escapement';
import { expect, test } from 'vitest';
import { expectInvalid, RANGE, TYPE, VALUE } from '../core/refused.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { Fixture, TestOperation } from './support/fixture.ts';

class Delayed extends DelayedOperation {
  override tryComplete = (): boolean => false;
  override onComplete = (): void => undefined;
  override onExpiration = (): void => undefined;
}

/** A purgatory in which something waits. */
function busy(options: PurgatoryOptions<string> = {}): Fixture {
  const fixture = new Fixture(options);
  fixture.watch('a', 'xy', { delayMs: 10 });
  fixture.watch('b', 'y');
  return fixture;
}

/** The error that `action` throws, or rejects with, after a check that it changed nothing. */
async function refusedBy(fixture: Fixture, action: () => unknown): Promise<unknown> {
  const before = fixture.gauges();
  const error: unknown = await Promise.resolve()
    .then(action)
    .then(() => expect.fail('it was accepted'))
    .catch((reason: unknown) => reason);
  expect(fixture.gauges()).toEqual(before);
  expect([fixture.log, fixture.errors]).toEqual([[], []]);
  return error;
}

test.each([
  [NaN, RANGE, 'NaN'],
  [-Infinity, RANGE, '-Infinity'],
  ['10', TYPE, "'10' (a string)"],
  [10n, TYPE, '10n (a bigint)'],
  [undefined, TYPE, 'undefined'],
  [null, TYPE, 'null'],
  [{}, TYPE, '[object Object]'],
  [Symbol('s'), TYPE, 'Symbol(s)'],
])('an operation refuses a delay of %o', (delayMs, kind, shown) => {
  const error = thrownBy(() => new Delayed(delayMs as number));
  expectInvalid(error, 'delayMs', kind, shown);
});

test('the error for the delay of an operation names Infinity, which is allowed', () => {
  expect(() => new Delayed(NaN)).toThrow(
    'delayMs must be a number of milliseconds or Infinity. Received NaN',
  );
});

const BAD_KEYS: readonly (readonly [keys: unknown, kind: typeof RANGE, argument: string, shown: string])[] = [
  [[], RANGE, 'watchKeys', '[object Array]'],
  [new Set(), RANGE, 'watchKeys', '[object Set]'],
  ['xy', TYPE, 'watchKeys', "'xy' (a string)"],
  [undefined, TYPE, 'watchKeys', 'undefined'],
  [null, TYPE, 'watchKeys', 'null'],
  [5, TYPE, 'watchKeys', '5'],
  [{ 0: 'x', length: 1 }, TYPE, 'watchKeys', '[object Object]'],
  [['x', undefined], TYPE, 'key', 'undefined'],
  // eslint-disable-next-line no-sparse-arrays -- that is the point
  [['x', , 'y'], TYPE, 'key', 'undefined'],
];

test.each(BAD_KEYS)('tryCompleteElseWatch and wait refuse %o as keys', async (bad, kind, argument, shown) => {
  const fixture = busy();
  const operation = fixture.operation('c', { holds: true });
  const keys = bad as string[];
  for (const action of [
    () => fixture.purgatory.tryCompleteElseWatch(operation, keys),
    () => fixture.purgatory.wait(keys, () => expect.fail(), { timeoutMs: 5 }),
  ]) {
    expectInvalid(await refusedBy(fixture, action), argument, kind, shown);
  }
  expect([operation.tries, operation.isCompleted]).toEqual([0, false]);
});

test('checkAndComplete and cancelForKey refuse undefined as a key', async () => {
  const fixture = busy();
  const key = undefined as unknown as string;
  for (const action of [
    () => fixture.purgatory.checkAndComplete(key),
    () => fixture.purgatory.cancelForKey(key),
  ]) {
    expectInvalid(await refusedBy(fixture, action), 'key', TYPE, 'undefined');
  }
});

test.each([
  [undefined, 'undefined'],
  [null, 'null'],
  [true, 'true'],
  [{}, '[object Object]'],
  [() => 'x', '[function anonymous]'],
])('every method refuses a key that keyOf maps to %o', async (plain, shown) => {
  const keyOf = (key: string): string => (key === 'bad' ? (plain as string) : key);
  const fixture = busy({ keyOf });
  const { purgatory } = fixture;
  for (const action of [
    () => purgatory.tryCompleteElseWatch(fixture.operation('c'), ['x', 'bad']),
    () => purgatory.wait(['bad'], () => 1, { timeoutMs: 5 }),
    () => purgatory.checkAndComplete('bad'),
    () => purgatory.cancelForKey('bad'),
  ]) {
    expectInvalid(await refusedBy(fixture, action), 'keyOf(key)', TYPE, shown);
  }
});

type Call = (purgatory: Fixture['purgatory'], value: never) => unknown;

const watchOperation: Call = (purgatory, operation) => purgatory.tryCompleteElseWatch(operation, ['x']);
const waitFor: Call = (purgatory, condition) => purgatory.wait(['x'], condition, { timeoutMs: 5 });
const waitWith: Call = (purgatory, options) => purgatory.wait(['x'], () => 1, options);
const waitAtMost: Call = (purgatory, timeoutMs) => purgatory.wait(['x'], () => 1, { timeoutMs });
const waitUntil: Call = (purgatory, signal) => purgatory.wait(['x'], () => 1, { timeoutMs: 5, signal });

test.each<[what: string, value: unknown, kind: typeof RANGE, shown: string, call: Call]>([
  ['operation', undefined, TYPE, 'undefined', watchOperation],
  ['operation', null, TYPE, 'null', watchOperation],
  ['operation', 'a', TYPE, "'a' (a string)", watchOperation],
  ['operation', () => true, TYPE, '[function anonymous]', watchOperation],
  ['operation', { tryComplete: () => true }, TYPE, '[object Object]', watchOperation],
  ['operation', Object.freeze(new TestOperation('frozen')), TYPE, '[object Object]', watchOperation],
  ['timeoutMs', NaN, RANGE, 'NaN', waitAtMost],
  ['timeoutMs', -Infinity, RANGE, '-Infinity', waitAtMost],
  ['timeoutMs', '10', TYPE, "'10' (a string)", waitAtMost],
  ['timeoutMs', undefined, TYPE, 'undefined', waitAtMost],
  ['timeoutMs', null, TYPE, 'null', waitAtMost],
  ['condition', undefined, TYPE, 'undefined', waitFor],
  ['condition', 'x', TYPE, "'x' (a string)", waitFor],
  ['condition', Promise.resolve(1), TYPE, '[object Promise]', waitFor],
  ['options', undefined, TYPE, 'undefined', waitWith],
  ['options', null, TYPE, 'null', waitWith],
  ['options', 5, TYPE, '5', waitWith],
  ['signal', null, TYPE, 'null', waitUntil],
  ['signal', {}, TYPE, '[object Object]', waitUntil],
  ['signal', new AbortController(), TYPE, '[object AbortController]', waitUntil],
])('the %s of a call must not be %o, which changes nothing', async (what, value, kind, shown, call) => {
  const fixture = busy();
  const error = await refusedBy(fixture, () => call(fixture.purgatory, value as never));
  expectInvalid(error, what, kind, shown);
});

const BAD_OPTIONS: readonly (readonly [option: string, value: unknown, shown: string])[] = [
  ['timer', {}, '[object Object]'],
  ['timer', null, 'null'],
  ['timer', { add: () => undefined }, '[object Object]'],
  ['timerEnabled', 1, '1'],
  ['timerEnabled', null, 'null'],
  ['keyOf', 'id', "'id' (a string)"],
  ['keyOf', null, 'null'],
  ['onError', null, 'null'],
  ['onError', {}, '[object Object]'],
  ['metrics', {}, '[object Object]'],
  ['metrics', null, 'null'],
  ['clock', {}, '[object Object]'],
  ['clock', Date, '[function Date]'],
];

test.each(BAD_OPTIONS)('the constructor refuses %o: %o', (option, value, shown) => {
  const error = thrownBy(() => new DelayedOperationPurgatory('test', { [option]: value }));
  expectInvalid(error, option, TYPE, shown);
});

test.each<[argument: string, value: unknown, shown: string, make: (value: never) => unknown]>([
  ['options', null, 'null', (options) => new DelayedOperationPurgatory('test', options)],
  ['options', 'timer', "'timer' (a string)", (options) => new DelayedOperationPurgatory('test', options)],
  ['name', undefined, 'undefined', (name) => new DelayedOperationPurgatory(name)],
  ['name', {}, '[object Object]', (name) => new DelayedOperationPurgatory(name)],
  ['name', 5, '5', (name) => new DelayedOperationPurgatory(name)],
])('the constructor refuses as its %s: %o', (argument, value, shown, make) => {
  const error = thrownBy(() => make(value as never));
  expectInvalid(error, argument, TYPE, shown);
});

test('an undefined option has its default', () => {
  const clock = new ManualClock();
  const options = { timer: undefined, timerEnabled: undefined, keyOf: undefined, onError: undefined };
  const purgatory = new DelayedOperationPurgatory('', { clock, metrics: undefined, ...options });
  purgatory.tryCompleteElseWatch(new TestOperation('a', { delayMs: 5 }), ['x']);
  expect([purgatory.name, purgatory.numDelayed]).toEqual(['', 1]);
  purgatory.close();
});

test.each<[options: unknown, kind: object]>([
  ...['expire', '', null, true].map((pending): [unknown, object] => [{ pending }, VALUE]),
  [null, TYPE],
  ['drop', TYPE],
])('close refuses the options %o, and the purgatory stays open', async (options, kind) => {
  const fixture = busy();
  const error = await refusedBy(fixture, () => fixture.purgatory.close(options as never));
  expect(error).toMatchObject(kind);
  expect(fixture.purgatory.close()).toHaveLength(2);
});
