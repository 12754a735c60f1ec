import type { Broker, LeasedTask, QueueLimits, Rate } from 'escapement/tasks';
import { expect } from 'vitest';
import { next, put } from './keys.ts';
import {
  caseWith,
  catchUp,
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  recoverOne,
  take,
  type BrokerFactory,
} from './support.ts';

/** What ends a run. */
const ENDINGS: Readonly<Record<string, (broker: Broker, task: LeasedTask) => Promise<unknown>>> = {
  'is completed': (broker, task) => broker.complete(task),
  fails: (broker, task) => broker.retry(task, failure(), broker.clock.wallNow() + LONG_MS),
  'is archived': (broker, task) => broker.archive(task, failure()),
  'is released': (broker, task) => broker.release(task),
  'is discarded': (broker, task) => broker.discard(task),
};

export const ONE_AT_A_TIME: Readonly<Record<string, QueueLimits>> = {
  'of the queue': { concurrency: 1 },
  'of each key': { perKey: { concurrency: 1 } },
};

/** Long enough that no token comes by itself while a test runs. */
const TOKEN_MS = 10_000;
const EARLY_MS = 2_000;

export const RATES: Readonly<Record<string, (rate: Rate) => QueueLimits>> = {
  'of the queue': (rate) => ({ rate }),
  'of each key': (rate) => ({ perKey: { rate } }),
};

function slow(burst: number): Rate {
  return { tasks: 1, perMs: TOKEN_MS, burst };
}

/** How many tasks can be leased now. */
export async function countOf(broker: Broker): Promise<number> {
  return (await next(broker)).length;
}

export function describeLimits(make: BrokerFactory): void {
  const it = caseWith(make);

  it('a queue never has more active tasks than its limit, and the others wait as pending', async (broker) => {
    await broker.setLimits(QUEUE, { concurrency: 3 });
    await put(broker, 'a1', 'a2', 'b1', 'b2', '1');
    const taken = await Promise.all(Array.from({ length: 5 }, () => broker.dequeue(QUEUE, 2, LONG_MS)));
    expect(idsOf(taken.flat()).sort()).toEqual(['1', 'a1', 'b1']);
    expect((await idsIn(broker, 'pending')).sort()).toEqual(['a2', 'b2']);
    expect(await countOf(broker)).toBe(0);
  });

  it('a key never has more active tasks than its limit, and holds no other key back', async (broker) => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 2 } });
    await put(broker, 'a1', 'a2', 'a3', 'a4', 'b1', '1', '2', '3');
    expect(await next(broker)).toEqual(['a1', 'b1', '1', 'a2', '2']);
    await put(broker, 'a5', 'b2', 'b3', 'c1');
    expect(await next(broker)).toEqual(['b2', 'c1']);
  });

  it('the limits of a queue and of its keys hold together', async (broker) => {
    await broker.setLimits(QUEUE, { concurrency: 3, perKey: { concurrency: 1 } });
    await put(broker, 'a1', 'a2', 'b1', 'b2');
    const [a1] = await broker.dequeue(QUEUE, 10, LONG_MS);
    await put(broker, 'c1', 'd1');
    expect(await next(broker)).toEqual(['c1']);
    if (a1 !== undefined) await broker.complete(a1);
    expect(await next(broker)).toEqual(['d1']);
  });

  for (const [which, limits] of Object.entries(ONE_AT_A_TIME)) {
    for (const [ending, end] of Object.entries(ENDINGS)) {
      it(`the place ${which} is free when a run ${ending}, once`, async (broker) => {
        await broker.setLimits(QUEUE, limits);
        await put(broker, 'a1', 'a2', 'a3');
        const task = await take(broker);
        expect(await countOf(broker)).toBe(0);
        await end(broker, task);
        expect(await next(broker)).toEqual([ending === 'is released' ? 'a1' : 'a2']);
        await end(broker, task).catch(() => undefined); // the lease is lost
        expect(await countOf(broker)).toBe(0);
      });
    }

    it(`the place ${which} is taken until a run that has lost its worker is recovered, and that run ends`, async (broker, time) => {
      await broker.setLimits(QUEUE, limits);
      await put(broker, 'a1', 'a2');
      const lost = await take(broker, QUEUE, 1_000);
      await time.pass(1_000);
      await catchUp(broker);
      expect(await countOf(broker)).toBe(0);
      const recovered = await recoverOne(broker);
      expect(await countOf(broker)).toBe(0);
      await broker.complete(lost).catch(() => undefined); // the lease is lost
      expect(await countOf(broker)).toBe(0);
      await broker.complete(recovered);
      expect(await next(broker)).toEqual(['a2']);
    });
  }

  it('a key that was held takes its turn behind the others when it may run again', async (broker) => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await put(broker, 'a1', 'a2', 'b1', 'b2', 'c1', 'd1');
    const [a1, b1] = await broker.dequeue(QUEUE, 2, LONG_MS);
    if (a1 === undefined || b1 === undefined) throw new Error('there were two');
    await broker.complete(b1);
    await broker.complete(a1);
    expect(await next(broker)).toEqual(['c1', 'd1', 'b2', 'a2']);
  });

  it('a limit that is lowered interrupts no run, and holds when enough runs have ended', async (broker) => {
    await put(broker, 'a1', 'a2', 'a3', 'a4', 'a5');
    const active = await broker.dequeue(QUEUE, 3, LONG_MS);
    await broker.setLimits(QUEUE, { concurrency: 2, perKey: { concurrency: 1 } });
    expect(await broker.extendLeases(active, LONG_MS)).toEqual([]);
    for (const task of active) {
      expect(await countOf(broker)).toBe(0);
      await broker.complete(task);
    }
    expect(await next(broker)).toEqual(['a4']);
  });

  it('runs that began before their keys had a limit have places, and give them back', async (broker) => {
    await put(broker, 'a1', 'a2', 'b1', '1', 'a3', 'a4', 'b2', '2');
    const running = await broker.dequeue(QUEUE, 4, LONG_MS);
    for (const limits of [{ perKey: { concurrency: 1 } }, undefined, { perKey: { concurrency: 1 } }])
      await broker.setLimits(QUEUE, limits);
    expect(await next(broker)).toEqual([]);
    for (const task of running) await broker.complete(task);
    expect((await next(broker)).sort()).toEqual(['2', 'a3', 'b2']);
  });

  it('a limit that is raised or removed holds at once', async (broker) => {
    await broker.setLimits(QUEUE, { concurrency: 1 });
    await put(broker, 'a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2');
    expect(await next(broker)).toEqual(['a1']);
    await broker.setLimits(QUEUE, { concurrency: 4, perKey: { concurrency: 2 } });
    expect(await next(broker)).toEqual(['b1', 'a2', 'b2']);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 3 } });
    expect(await next(broker)).toEqual(['a3']);
    await broker.setLimits(QUEUE, undefined);
    expect(await next(broker)).toEqual(['a4', 'a5']);
  });

  for (const [which, limitsOf] of Object.entries(RATES)) {
    it(`the rate ${which} lets its burst start, then one task with each token, and saves no more than the burst`, async (broker, time) => {
      await broker.setLimits(QUEUE, limitsOf(slow(3)));
      await put(broker, ...Array.from({ length: 20 }, (_, n) => `a${n}`));
      expect(await next(broker, 2)).toEqual(['a0', 'a1']);
      expect(await next(broker)).toEqual(['a2']);
      await time.advance(TOKEN_MS - EARLY_MS);
      expect(await countOf(broker)).toBe(0);
      await time.pass(EARLY_MS);
      expect(await next(broker)).toEqual(['a3']);
      await time.pass(2 * TOKEN_MS);
      expect(await next(broker)).toEqual(['a4', 'a5']);
      await time.advance(LONG_MS);
      expect(await next(broker)).toEqual(['a6', 'a7', 'a8']);
      expect(await countOf(broker)).toBe(0);
    });

    it(`a token ${which} does not come back when its run ends`, async (broker) => {
      await broker.setLimits(QUEUE, limitsOf(slow(Object.keys(ENDINGS).length)));
      await put(broker, 'a1', 'a2', 'a3', 'a4', 'a5', 'a6');
      for (const end of Object.values(ENDINGS)) await end(broker, await take(broker));
      expect(await countOf(broker)).toBe(0);
    });

    it(`a rate ${which} that is changed holds at once, with the tokens that were taken`, async (broker, time) => {
      await broker.setLimits(QUEUE, limitsOf(slow(1)));
      await put(broker, ...Array.from({ length: 20 }, (_, n) => `a${n}`));
      expect(await countOf(broker)).toBe(1);
      await broker.setLimits(QUEUE, limitsOf(slow(3)));
      expect(await countOf(broker)).toBe(2);
      await broker.setLimits(QUEUE, limitsOf(slow(1))); // not three tokens that have to come first
      expect(await countOf(broker)).toBe(0);
      await time.pass(TOKEN_MS);
      expect(await countOf(broker)).toBe(1);
      await broker.setLimits(QUEUE, undefined);
      expect(await countOf(broker)).toBe(16);
    });
  }

  it('each key has tokens of its own, and a key without one holds no other key back', async (broker, time) => {
    await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 1, perMs: TOKEN_MS } } });
    await put(broker, 'a1', 'a2', 'b1', 'b2', '1', '2');
    expect(await next(broker)).toEqual(['a1', 'b1', '1']);
    await time.advance(EARLY_MS);
    await put(broker, 'c1', 'c2', 'a3');
    expect(await next(broker)).toEqual(['c1']);
    await time.pass(TOKEN_MS - EARLY_MS);
    expect((await next(broker)).sort()).toEqual(['2', 'a2', 'b2']);
    await time.advance(EARLY_MS);
    expect(await next(broker)).toEqual(['c2']);
  });

  it('a task takes a token of its key and one of the queue', async (broker, time) => {
    const rate = { tasks: 1, perMs: TOKEN_MS };
    await broker.setLimits(QUEUE, { rate: { ...rate, burst: 3 }, perKey: { rate: { ...rate, burst: 2 } } });
    await put(broker, 'a1', 'a2', 'a3', 'b1', 'b2');
    expect(await next(broker)).toEqual(['a1', 'b1', 'a2']);
    await time.pass(TOKEN_MS);
    expect(await next(broker)).toEqual(['b2']);
    await time.pass(TOKEN_MS);
    expect(await next(broker)).toEqual(['a3']);
  });

  it('a task needs a place and a token, and one without a place takes no token', async (broker, time) => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1, rate: slow(2) } });
    await put(broker, 'a1', 'a2', 'a3');
    const first = await take(broker);
    expect(await countOf(broker)).toBe(0);
    await broker.complete(first);
    const second = await take(broker);
    await broker.complete(second);
    expect(await countOf(broker)).toBe(0);
    await time.pass(TOKEN_MS);
    expect(await next(broker)).toEqual(['a3']);
  });

  it('a recovered run takes no token', async (broker, time) => {
    await broker.setLimits(QUEUE, { rate: { tasks: 1, perMs: LONG_MS, burst: 2 } });
    await put(broker, 'a1', 'a2');
    await take(broker, QUEUE, 1_000);
    await time.pass(1_000);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toHaveLength(1);
    expect(await next(broker)).toEqual(['a2']);
  });

  it('limits are stored with every burst, create their queue, and are removed', async (broker) => {
    await broker.setLimits(QUEUE, undefined);
    await broker.setLimits(QUEUE, {});
    expect(await broker.limits(QUEUE)).toBeUndefined();
    expect(await broker.queues()).toEqual([]);
    const rate = { tasks: 100, perMs: 1_000 };
    const limits = { concurrency: 5, rate, perKey: { concurrency: 1, rate: { ...rate, burst: 7 } } };
    await broker.setLimits(QUEUE, limits);
    expect(await broker.queues()).toEqual([QUEUE]);
    expect(await broker.limits(QUEUE)).toStrictEqual(limits);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 2 } });
    expect(await broker.limits(QUEUE)).toEqual({ perKey: { concurrency: 2 } });
    await broker.setLimits(QUEUE, { perKey: {} });
    expect(await broker.limits(QUEUE)).toBeUndefined();
    await broker.setLimits(QUEUE, { concurrency: 2 });
    await broker.setLimits(QUEUE, undefined);
    expect(await broker.limits(QUEUE)).toBeUndefined();
    expect(await broker.queues()).toEqual([QUEUE]);
  });

  it('each queue has its own limits', async (broker) => {
    await broker.setLimits(QUEUE, { concurrency: 1 });
    for (const queue of [QUEUE, QUEUE, 'other', 'other']) await broker.enqueue(newTask({ queue }));
    expect(await countOf(broker)).toBe(1);
    expect(await broker.dequeue('other', 10, LONG_MS)).toHaveLength(2);
    expect(await broker.limits('other')).toBeUndefined();
  });

  it('a removed queue has lost its limits, and has all its tokens if it gets the same limits again', async (broker) => {
    const limits = { rate: { tasks: 1, perMs: LONG_MS }, perKey: { rate: { tasks: 1, perMs: LONG_MS } } };
    for (let life = 0; life < 2; life++) {
      await broker.setLimits(QUEUE, limits);
      await put(broker, 'a1', 'a2');
      await broker.complete(await take(broker));
      expect(await countOf(broker)).toBe(0);
      await broker.removeQueue(QUEUE, { force: true });
      expect(await broker.limits(QUEUE)).toBeUndefined();
    }
    await put(broker, 'a1', 'a2');
    expect(await countOf(broker)).toBe(2);
  });
}
