import { EscapementError } from 'escapement';
import { checkBroker, checkBrokerLog, checkPurgatory, checkQueue, checkTimer } from 'escapement/testing';
import { expect, it } from 'vitest';
import { outOfRange, wrongType, wrongValue } from '../../src/core/errors.ts';
import { runProgram } from '../run-program.ts';
import { RANGE, TYPE, VALUE } from './refused.ts';

it('an error has a code, an op and a cause', () => {
  const cause = new Error('disk');
  const error = new EscapementError('ERR_TIMER_CLOSED', 'timer is closed', { op: 'SystemTimer.add', cause });
  const fields = { code: 'ERR_TIMER_CLOSED', op: 'SystemTimer.add', cause };
  expect(error).toMatchObject({ name: 'EscapementError', ...fields });
  expect(error).toBeInstanceOf(Error);
  expect(error).toBeInstanceOf(EscapementError);
});

it('an error has no op and no cause if none was given, and keeps a cause that is undefined', () => {
  expect('op' in new EscapementError('ERR_TIMER_CLOSED', 'm')).toBe(false);
  expect('cause' in new EscapementError('ERR_TIMER_CLOSED', 'm')).toBe(false);
  expect('cause' in new EscapementError('ERR_TIMER_CLOSED', 'm', { cause: undefined })).toBe(true);
});

it('instanceof recognises an error of another loaded copy of the package', () => {
  const foreign = Object.create({ [Symbol.for('escapement.error')]: true }) as object;
  expect(foreign instanceof EscapementError).toBe(true);
  for (const other of [new Error('m'), null, undefined, 5, 'text', {}]) {
    expect(other instanceof EscapementError).toBe(false);
  }
});

it('a subclass of EscapementError can have its own instanceof', () => {
  class Special extends EscapementError {}
  const special = new Special('ERR_TIMER_CLOSED', 'm');
  expect(special instanceof Special && special instanceof EscapementError).toBe(true);
  expect(new EscapementError('ERR_TIMER_CLOSED', 'm') instanceof Special).toBe(false);
});

it('the JSON of an error has the cause and no stack', () => {
  const inner = new EscapementError('ERR_CLOCK_STALLED', 'inner');
  const error = new EscapementError('ERR_TIMER_CLOSED', 'outer', { op: 'x', cause: new Error('why') });
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    ...{ name: 'EscapementError', code: 'ERR_TIMER_CLOSED', message: 'outer', op: 'x' },
    cause: { name: 'Error', message: 'why' },
  });
  const nested = new EscapementError('ERR_TIMER_CLOSED', 'outer', { cause: inner });
  const cause = { name: 'EscapementError', code: 'ERR_CLOCK_STALLED', message: 'inner' };
  expect(nested.toJSON()['cause']).toEqual(cause);
  const plain = new EscapementError('ERR_TIMER_CLOSED', 'outer', { cause: 'text' });
  expect(plain.toJSON()['cause']).toBe('text');
});

it('the JSON of an error that is among its own causes ends where the circle begins again', () => {
  const outer = new EscapementError('ERR_TIMER_CLOSED', 'outer');
  const inner = new EscapementError('ERR_CLOCK_STALLED', 'inner', { cause: outer });
  outer.cause = inner;
  expect(JSON.parse(JSON.stringify(outer))).toEqual({
    ...{ name: 'EscapementError', code: 'ERR_TIMER_CLOSED', message: 'outer' },
    cause: { name: 'EscapementError', code: 'ERR_CLOCK_STALLED', message: 'inner' },
  });
});

it('an argument error names the argument, what it must be, and the value', () => {
  expect(outOfRange('tickMs', 'an integer of at least 1', 0.5)).toMatchObject({
    ...RANGE,
    message: 'tickMs must be an integer of at least 1. Received 0.5',
  });
  expect(wrongType('delayMs', 'a number', '10')).toMatchObject({
    ...TYPE,
    message: "delayMs must be a number. Received '10' (a string)",
  });
  expect(wrongValue('rounding', "'up' or 'down'", null)).toMatchObject({
    ...VALUE,
    message: "rounding must be 'up' or 'down'. Received null",
  });
});

it.each([
  [NaN, 'NaN'],
  [-0, '0'],
  [10n, '10n (a bigint)'],
  [true, 'true'],
  [undefined, 'undefined'],
  [Symbol('s'), 'Symbol(s)'],
  [new Map(), '[object Map]'],
  [[1, 2], '[object Array]'],
  [Object.create(null), '[object Object]'],
  [Math.max, '[function max]'],
  [(): void => undefined, '[function anonymous]'],
  ['x'.repeat(100), `'${'x'.repeat(60)}…' (a string)`],
])('an argument error shows the value %o', (value, shown) => {
  expect(wrongType('a', 'b', value).message).toBe(`a must be b. Received ${shown}`);
});

it('an uncaught error is thrown in its own turn, after the code and the microtasks that were running', () => {
  const { lines, status } = runProgram(`
    import { SystemTimer } from 'escapement';
    process.on('uncaughtException', (error) => console.log('uncaught', error.message));
    const timer = new SystemTimer({ autoStart: false });
    timer.schedule(0, () => { throw new Error('first'); }, 0);
    timer.schedule(0, () => console.log('sibling ran'), 0);
    timer.schedule(0, () => { throw new Error('second'); }, 0);
    console.log('ran', timer.poll());
    Promise.resolve().then(() => console.log('microtask'));
    timer.close();
  `);
  expect(lines).toEqual(['sibling ran', 'ran 3', 'microtask', 'uncaught first', 'uncaught second']);
  expect(status).toBe(0);
});

it.each(
  [checkTimer, checkPurgatory, checkQueue, checkBroker, checkBrokerLog].map((check) => [check.name, check]),
)('%s refuses what is not of its class with a TypeError that has a code', async (_, check) => {
  const outcomeOf = (value: unknown): Promise<unknown> =>
    Promise.resolve(value).then(check as (value: unknown) => unknown);
  for (const value of [undefined, null, 5, {}, new Map()]) {
    await expect(outcomeOf(value)).rejects.toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }),
    );
  }
});
