import { describe, expect, test } from 'vitest';
import { checkOptions, integer, orInfinity, readOptions, type OptionTable } from '../../src/core/options.ts';
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

describe('options of a table', () => {
  test('have the defaults of what is missing or undefined', () => {
    expect(read({ url: '/' })).toEqual({ url: '/', retries: 3, onError: undefined });
    expect(read({ url: '/', retries: undefined })).toHaveProperty('retries', 3);
    expect(read({ url: '/', retries: Infinity })).toHaveProperty('retries', Infinity);
  });

  test('are read from a prototype too', () => {
    expect(read(Object.assign(Object.create({ retries: 5 }), { url: '/' }))).toHaveProperty('retries', 5);
  });

  test.each([
    [undefined, 'options must be an object. Received undefined'],
    [{}, 'options.url must be a string. Received undefined'],
    [{ url: '/', retries: null }, 'options.retries must be a number. Received null'],
    [{ url: '/', retries: 11 }, 'options.retries must be at most 10. Received 11'],
    [{ url: '/', onError: 1 }, 'options.onError must be a function. Received 1'],
    [{ url: '/', retry: 1 }, 'fetch: options.retry is not an option. Did you mean retries?'],
    [
      { url: '/', toString: 1 },
      'fetch: options.toString is not an option. Known options: url, retries, onError',
    ],
  ])('%o throws an error that names the option and its value', (options, message) => {
    expect(() => read(options)).toThrow(message);
    expect(() => {
      checkOptions('fetch', options, OPTIONS);
    }).toThrow(message);
  });

  test('have the name of their argument in an error', () => {
    expect(() => readOptions('fetch', { url: 1 } as never, OPTIONS, 'options.first')).toThrow(
      'options.first.url must be a string',
    );
  });
});
