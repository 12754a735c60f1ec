import { expect, it } from 'vitest';
import { errorText } from '../../../src/tasks/handler-errors.ts';

class Silent extends Error {
  override name = 'Silent';
}

const trap = new Proxy(new Error('x'), {
  get: () => {
    throw new Error('no');
  },
});

it.each([
  ['an error', new Error('disk full'), 'disk full'],
  ['a string', 'disk full', 'disk full'],
  ['an error without a message', new Silent(), 'Silent'],
  ['an error without anything', Object.assign(new Error(''), { name: '' }), 'unknown error'],
  ['nothing', undefined, 'thrown: undefined'],
  ['a blank string', ' ', "thrown: ' '"],
  ['a number', 42, 'thrown: 42'],
  ['an object', { status: 503 }, 'thrown: { status: 503 }'],
  ['an object whose properties throw', trap, 'unknown error: it cannot be read'],
])('errorText describes %s', (_what, thrown, text) => {
  expect(errorText(thrown)).toBe(text);
});

it('errorText returns well-formed Unicode: a lone surrogate would stop the task from being written', () => {
  expect(errorText(new Error('bad \uD800 text'))).toBe('bad \uFFFD text');
});

it('errorText limits the length and returns well-formed Unicode', () => {
  const text = errorText(new Error('😀'.repeat(10_000)));
  expect(text.length).toBe(8_192);
  expect(text.isWellFormed()).toBe(true);
  expect(text.endsWith('…')).toBe(true);
});
