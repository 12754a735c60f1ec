import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { leaseNow, processAll, takeNow } from './support/take.ts';

describe("a lease's done() is idempotent", () => {
  test('the second time it does nothing', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    queue.add('a');
    for (let i = 0; i < 3; i++) lease.done();
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual(['a']);
  });

  test('it ends its own hand-out, and never that of the next holder', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const first = await leaseNow(queue.leases());
    queue.add('a');
    first.done();
    const second = await leaseNow(queue.leases());
    queue.add('a');
    first.done();
    expect(queue.length).toBe(0); // still held
    second.done();
    expect(queue.length).toBe(1);
    checkQueue(queue);
  });

  test('also when the key was forgotten and came back', async () => {
    const queue = new WorkQueue<object>();
    const item = {};
    queue.add(item);
    const first = await leaseNow(queue.leases());
    first.done();
    queue.add(item);
    const second = await leaseNow(queue.leases());
    first.done();
    expect(
      thrownBy(() => {
        queue.done({});
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
    queue.done(item);
    second.done();
    checkQueue(queue);
  });

  test('it is one with done of the queue: whichever comes first', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    queue.done('a');
    lease.done();
    queue.add('a');
    const again = await leaseNow(queue.leases());
    again.done();
    expect(
      thrownBy(() => {
        queue.done('a');
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });

  test('Symbol.dispose is done()', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const lease = await leaseNow(queue.leases());
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(
      thrownBy(() => {
        queue.done('a');
      }),
    ).toHaveProperty('code', 'ERR_NOT_PROCESSING');
  });
});

describe('the queue in a for await', () => {
  test('is the leases of what is ready, until it is shut down and empty', async () => {
    const queue = new WorkQueue<string>();
    for (const item of 'abc') queue.add(item);
    queue.shutDown();
    const seen: string[] = [];
    for await (const lease of queue) {
      seen.push(lease.item);
      lease.done();
    }
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  test('leaving the loop loses nothing, and what is held stays held', async () => {
    const queue = new WorkQueue<string>();
    for (const item of 'abc') queue.add(item);
    for await (const lease of queue) {
      expect(lease.item).toBe('a');
      break;
    }
    expect(queue.length).toBe(2);
    queue.done('a');
    expect(await processAll(queue)).toEqual(['b', 'c']);
  });

  test('several loops share the items', async () => {
    const queue = new WorkQueue<number>();
    const seen: number[][] = [[], [], []];
    const loops = seen.map(async (mine) => {
      for await (const lease of queue) {
        mine.push(lease.item);
        lease.done();
      }
    });
    for (let item = 0; item < 30; item++) queue.add(item);
    await settled();
    queue.shutDown();
    await Promise.all(loops);
    expect(seen.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, i) => i));
    expect(seen.every((mine) => mine.length > 0)).toBe(true);
  });

  test('steps that were asked for ahead are answered in order', async () => {
    const queue = new WorkQueue<string>();
    const leases = queue[Symbol.asyncIterator]();
    const steps = [leases.next(), leases.next(), leases.next()];
    for (const item of 'ab') queue.add(item);
    queue.shutDown();
    const items = (await Promise.all(steps)).map(({ value, done }) => value?.item ?? done);
    expect(items).toEqual(['a', 'b', true]);
  });

  test('return lets go of all steps that wait: they are over, and take nothing', async () => {
    const queue = new WorkQueue<string>();
    const leases = queue.leases();
    const steps = [watch(leases.next()), watch(leases.next())];
    expect(await leases.return?.()).toEqual({ done: true, value: undefined });
    queue.add('a');
    await settled();
    expect(steps.map(({ value }) => value)).toEqual(Array(2).fill({ done: true, value: undefined }));
    expect(await leases.next()).toEqual({ done: true, value: undefined });
    expect(await takeNow(queue)).toBe('a');
  });

  test('an iterator is its own iterable', () => {
    const leases = new WorkQueue<string>().leases();
    expect(leases[Symbol.asyncIterator]()).toBe(leases);
  });
});
