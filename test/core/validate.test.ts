import { describe, expect, it } from 'vitest';
import {
  invalidDelay,
  requireFiniteNumber,
  requireFunction,
  requireIntegerAtLeast,
  requireOneOf,
  requireOptions,
  type OptionNames,
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

  describe('requireOptions', () => {
    const names: OptionNames<
      { tickMs?: number } | { name: string; id?: string; heartbeatIntervalMs?: number }
    > = {
      ...{ tickMs: true, name: true, id: true, heartbeatIntervalMs: true },
    };
    const messageFor = (value: unknown): string => {
      try {
        requireOptions('Timer', value, names);
      } catch (error) {
        return (error as Error).message;
      }
      return '';
    };

    it('accepts keys that are options, whatever their values are, and symbols', () => {
      expect(messageFor({})).toBe('');
      expect(messageFor({ tickMs: undefined, name: {}, [Symbol('mine')]: 1 })).toBe('');
    });

    it('checks own enumerable keys only', () => {
      expect(messageFor(Object.create({ inherited: 1 }))).toBe('');
      expect(messageFor(Object.defineProperty({}, 'hidden', { value: 1 }))).toBe('');
    });

    it.each([
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
    ])('corrects %s to %s', (key, meant) => {
      expect(messageFor({ [key]: undefined })).toBe(
        `Timer: options.${key} is not an option. Did you mean ${meant}?`,
      );
    });

    it.each(['x', 'retries', 'timeout', '', 'constructor', '__proto__', 'é'])(
      'lists all options for %j, which is similar to none',
      (key) => {
        const value: unknown = JSON.parse(`{ ${JSON.stringify(key)}: 1 }`);
        const list = 'tickMs, name, id, heartbeatIntervalMs';
        expect(messageFor(value)).toBe(`Timer: options.${key} is not an option. Known options: ${list}`);
      },
    );

    it('lists no options if there are more than eight', () => {
      const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`option${i}`, true as const]));
      expect(() => {
        requireOptions('Timer', { x: 1 }, many);
      }).toThrow(/^Timer: options\.x is not an option$/);
    });

    it('shows the beginning of a long key', () => {
      const key = 'k'.repeat(1_000_000);
      expect(messageFor({ [key]: 1 })).toMatch(/^Timer: options\.k{60}… is not an option\. Known/);
    });

    it('rejects a value that is not an object', () => {
      for (const bad of [null, undefined, 'a']) expect(messageFor(bad)).toMatch(/^options must be an object/);
    });
  });
});
