import { expect, test } from 'vitest';
import { settleEach } from '../../src/tasks/client.ts';

test('settles each for itself, in its place, whether it is ready, waits, throws or rejects', async () => {
  const work = (n: number): number | Promise<number> => {
    if (n === 2) throw new Error('thrown');
    if (n === 3) return Promise.reject(new Error('rejected'));
    return n === 4 ? new Promise((resolve) => setImmediate(resolve, 4)) : n;
  };
  await expect(settleEach([1, 2, 3, 4, 5], work)).resolves.toEqual([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: new Error('thrown') },
    { status: 'rejected', reason: new Error('rejected') },
    { status: 'fulfilled', value: 4 },
    { status: 'fulfilled', value: 5 },
  ]);
});
