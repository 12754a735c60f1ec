import { describe, expect, it } from 'vitest';
import { randomId } from '../../src/tasks/random-id.ts';

/** More than random bytes are fetched for at once. */
const MANY = 1_000;

describe('randomId', () => {
  const ids = Array.from({ length: MANY }, randomId);

  it('is a UUID of version 4', () => {
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  });

  it('is another one each time', () => {
    expect(new Set(ids).size).toBe(MANY);
  });

  it('has every digit in every other place', () => {
    for (let place = 0; place < 36; place++) {
      const expected = [8, 13, 18, 23].includes(place) ? 1 : place === 14 ? 1 : place === 19 ? 4 : 16;
      expect(new Set(ids.map((id) => id[place])).size).toBe(expected);
    }
  });
});
