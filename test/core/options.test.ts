import { expect, test } from 'vitest';
import { checkOptions, integer, type OptionTable, orInfinity, readOptions } from '../../src/core/options.ts';
import { requireFunction, requireString } from '../../src/core/validate.ts';

interface FetchOptions {
  readonly url: string;
  readonly retries?: number;
  readonly onError?: (error: unknown) => void;
}

const OPTIONS = {
  url: [requireString],
  retries: [orInfinity(integer(0, 10)), 3],
  onError: [requireFunction, undefined],
} satisfies OptionTable<FetchOptions>;

const read = (options: unknown) => readOptions('fetch', options as FetchOptions, OPTIONS);

test('options that are missing or undefined have their defaults', () => {
  expect(read({ url: '/' })).toEqual({ url: '/', retries: 3, onError: undefined });
  expect(read({ url: '/', retries: undefined })).toHaveProperty('retries', 3);
  expect(read({ url: '/', retries: Infinity })).toHaveProperty('retries', Infinity);
});

test('options are also read from a prototype', () => {
  expect(read(Object.assign(Object.create({ retries: 5 }), { url: '/' }))).toHaveProperty('retries', 5);
});

test.each([
  [undefined, 'fetch: options must be an object. Received undefined'],
  [{}, 'options.url must be a string. Received undefined'],
  [{ url: '/', retries: null }, 'options.retries must be a number. Received null'],
  [{ url: '/', retries: 11 }, 'options.retries must be at most 10. Received 11'],
  [{ url: '/', onError: 1 }, 'options.onError must be a function. Received 1'],
  [{ url: '/', retry: 1 }, 'fetch: options.retry is not an option. Did you mean retries?'],
  [
    { url: '/', toString: 1 },
    'fetch: options.toString is not an option. Known options: url, retries, onError',
  ],
])('the options %o are rejected by an error that names the option and its value', (options, message) => {
  expect(() => read(options)).toThrow(message);
  expect(() => checkOptions('fetch', options, OPTIONS)).toThrow(message);
});

test('an error of an option has the name of the argument', () => {
  expect(() => readOptions('fetch', { url: 1 } as never, OPTIONS, 'options.first')).toThrow(
    'options.first.url must be a string',
  );
});

const anything = (): void => undefined;
const table: OptionTable<{ tickMs?: number } | { name?: string; id?: string; heartbeatIntervalMs?: number }> =
  {
    tickMs: [anything, undefined],
    name: [anything, undefined],
    id: [anything, undefined],
    heartbeatIntervalMs: [anything, undefined],
  };
const messageFor = (value: unknown): string => {
  try {
    checkOptions('Timer', value, table);
  } catch (error) {
    return (error as Error).message;
  }
  return '';
};

test('names of options may be undefined, and symbols are ignored', () => {
  expect(messageFor({})).toBe('');
  expect(messageFor({ tickMs: undefined, name: {}, [Symbol('mine')]: 1 })).toBe('');
});

test('only names of own enumerable options are checked', () => {
  expect(messageFor(Object.create({ inherited: 1 }))).toBe('');
  expect(messageFor(Object.defineProperty({}, 'hidden', { value: 1 }))).toBe('');
});

test.each([
  ['tickMS', 'tickMs'],
  ['TICKMS', 'tickMs'],
  ['tick', 'tickMs'],
  ['tickkMss', 'tickMs'],
  ['nmae', 'name'],
  ['Id', 'id'],
  ['i', 'id'],
  ['heartbeatInterval', 'heartbeatIntervalMs'],
  ['hearbeatIntervallSecs', 'heartbeatIntervalMs'],
  ['heartbeatIntervals', 'heartbeatIntervalMs'],
])('the unknown option %s is corrected to %s', (key, meant) => {
  expect(messageFor({ [key]: undefined })).toBe(
    `Timer: options.${key} is not an option. Did you mean ${meant}?`,
  );
});

test.each(['x', 'retries', 'timeout', '', 'constructor', '__proto__', 'é'])(
  'all options are listed for %j, which is similar to none of them',
  (key) => {
    const value: unknown = JSON.parse(`{ ${JSON.stringify(key)}: 1 }`);
    const list = 'tickMs, name, id, heartbeatIntervalMs';
    expect(messageFor(value)).toBe(`Timer: options.${key} is not an option. Known options: ${list}`);
  },
);

test('only the beginning of the name of a long unknown option is shown', () => {
  const key = 'k'.repeat(1_000_000);
  expect(messageFor({ [key]: 1 })).toMatch(/^Timer: options\.k{60}… is not an option\. Known/);
});
