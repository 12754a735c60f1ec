import { expect } from 'vitest';

/** What the error of an argument, or of an option, is. */
export const RANGE = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
export const TYPE = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
export const VALUE = { name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' };

/** Checks that an error names an argument, and shows the value that was received. */
export function expectInvalid(error: unknown, argument: string, kind: typeof RANGE, shown: string): void {
  expect(error).toMatchObject(kind);
  const { message } = error as Error;
  const about = message.replace(/^[\w.]+: /, ''); // what takes the options
  expect(
    ['', 'options.'].some((prefix) => about.startsWith(`${prefix}${argument} must be `)),
    message,
  ).toBe(true);
  expect(message).toContain(`Received ${shown}`);
}
