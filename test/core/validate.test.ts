import { describe, expect, it } from 'vitest';
import {
  invalidDelay,
  requireFiniteNumber,
  requireFunction,
  requireIntegerAtLeast,
  requireOneOf,
} from '../../src/core/validate.ts';

describe('validation', () => {
  it('tells a delay of the wrong type from one out of range', () => {
    expect(invalidDelay('delayMs', Infinity)).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' });
    expect(invalidDelay('delayMs', '5')).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' });
  });

  it('accepts finite numbers only', () => {
    for (const good of [0, -1, 0.5, 1e308]) requireFiniteNumber('n', good);
    for (const bad of [NaN, Infinity, -Infinity]) {
      expect(() => {
        requireFiniteNumber('n', bad);
      }).toThrow(RangeError);
    }
    for (const bad of ['1', 1n, null, undefined, {}]) {
      expect(() => {
        requireFiniteNumber('n', bad);
      }).toThrow(TypeError);
    }
  });

  it('accepts integers from a minimum on', () => {
    requireIntegerAtLeast('n', 2, 2);
    for (const bad of [1, 2.5, NaN, Infinity, 2 ** 53]) {
      expect(() => {
        requireIntegerAtLeast('n', 2, bad);
      }).toThrow(/n must be an integer of at least 2\. Received/);
    }
    expect(() => {
      requireIntegerAtLeast('n', 2, '3');
    }).toThrow(TypeError);
  });

  it('accepts functions, and words of a list', () => {
    requireFunction('f', () => undefined);
    expect(() => {
      requireFunction('f', {});
    }).toThrow(/f must be a function. Received \[object Object\]/);
    requireOneOf('w', ['a', 'b'], 'a');
    for (const bad of ['c', undefined, 1]) {
      expect(() => {
        requireOneOf('w', ['a', 'b'], bad);
      }).toThrow(/w must be 'a' or 'b'/);
    }
  });
});
