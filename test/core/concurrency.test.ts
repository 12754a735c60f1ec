import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BackOff } from '../../src/core/back-off.ts';
import { CoalescedRun } from '../../src/core/coalesced-run.ts';
import { RingQueue } from '../../src/core/ring-queue.ts';
import { KeyedSerial, Serial } from '../../src/core/serial.ts';
import { TurnBudget } from '../../src/core/own-turn.ts';
import { WaitGroup, WaitLine } from '../../src/core/wait-line.ts';
import { rejectionOf, settled, watch } from '../workqueue/support/outcome.ts';
import { testProperty } from '../runs.ts';

function held(): { run: CoalescedRun; ends: (() => void)[] } {
  const ends: (() => void)[] = [];
  return { run: new CoalescedRun(() => new Promise((resolve) => ends.push(resolve))), ends };
}

test('a coalesced run starts inside the call of its trigger, is idle after its job, and starts again', async () => {
  const { run, ends } = held();
  expect(run.running).toBeUndefined();
  run.trigger();
  expect(ends).toHaveLength(1);
  const { running } = run;
  ends[0]?.();
  await running;
  expect([ends.length, run.running]).toEqual([1, undefined]);
  run.trigger();
  expect(ends).toHaveLength(2);
});

test('triggers during a run are followed by one more run, after it', async () => {
  const { run, ends } = held();
  run.trigger();
  run.trigger();
  run.trigger();
  expect(ends).toHaveLength(1);
  const { running } = run;
  ends[0]?.();
  await Promise.resolve();
  await Promise.resolve();
  expect(ends).toHaveLength(2);
  ends[1]?.();
  await running;
  expect([ends.length, run.running]).toEqual([2, undefined]);
});

test('a job that triggers its own run is run once more, and never inside itself', async () => {
  let depth = 0;
  const depths: number[] = [];
  const run = new CoalescedRun(async () => {
    depths.push(++depth);
    if (depths.length < 3) run.trigger();
    await Promise.resolve();
    depth--;
  });
  run.trigger();
  await run.running;
  expect(depths).toEqual([1, 1, 1]);
});

test('the end of a run can be awaited from the start of its job', async () => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((end) => (resolve = end));
  let isIdle = false;
  const run = new CoalescedRun(() => {
    void run.running?.then(() => (isIdle = true));
    return promise;
  });
  run.trigger();
  await settled();
  expect([run.running === undefined, isIdle]).toEqual([false, false]);
  resolve();
  await settled();
  expect([run.running === undefined, isIdle]).toEqual([true, true]);
});

test('serial actions run one after another, in the order they were added', async () => {
  const serial = new Serial();
  const events: string[] = [];
  const action = (name: string) => async (): Promise<string> => {
    events.push(`${name} begins`);
    await Promise.resolve();
    events.push(`${name} ends`);
    return name;
  };
  expect(await Promise.all([serial.run(action('a')), serial.run(action('b'))])).toEqual(['a', 'b']);
  expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends']);
});

test('a serial action that rejects fails for its caller alone', async () => {
  const serial = new Serial();
  const failed = serial.run(() => Promise.reject(new Error('broken')));
  const next = serial.run(() => Promise.resolve('next'));
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('next');
});

test('keyed actions of one key run one after another, and do not wait for those of another key', async () => {
  const serial = new KeyedSerial();
  const events: string[] = [];
  const ends: (() => void)[] = [];
  const run = (key: string, name: string): Promise<void> =>
    serial.run(key, () => {
      events.push(name);
      return new Promise((resolve) => ends.push(resolve));
    });
  const all = [run('a', 'first of a'), run('a', 'second of a'), run('b', 'first of b')];
  expect(events).toEqual(['first of a', 'first of b']);
  ends[0]?.();
  await all[0];
  expect(events).toEqual(['first of a', 'first of b', 'second of a']);
  for (const end of ends) end();
  await Promise.all(all);
});

test('a keyed action that rejects fails for its caller alone', async () => {
  const serial = new KeyedSerial();
  const failed = serial.run('a', () => Promise.reject(new Error('broken')));
  const next = serial.run('a', () => Promise.resolve('next'));
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('next');
});

test('a back-off doubles up to ten seconds, spread over the upper half, and starts anew after a success', () => {
  const backOff = new BackOff();
  for (let i = 0; i < 20; i++) {
    const mostMs = Math.min(100 * 2 ** i, 10_000);
    const waitMs = backOff.next();
    expect(waitMs).toBeGreaterThanOrEqual(mostMs / 2);
    expect(waitMs).toBeLessThanOrEqual(mostMs);
  }
  backOff.reset();
  expect(backOff.next()).toBeLessThanOrEqual(100);
});

test('a back-off without jitter waits exactly twice as long after each failure', () => {
  const backOff = new BackOff({ firstMs: 250, longestMs: 700, jitter: 0 });
  expect([backOff.next(), backOff.next(), backOff.next(), backOff.next()]).toEqual([250, 500, 700, 700]);
});

const piecesOf = (budget: TurnBudget): number => {
  let pieces = 1;
  while (!budget.spend()) pieces++;
  return pieces;
};

test('a turn budget is spent after a thousand pieces, until the host has had a turn', async () => {
  const budget = new TurnBudget();
  expect(piecesOf(budget)).toBe(1_000);
  expect([budget.spend(), budget.spend()]).toEqual([true, true]);
  await budget.next();
  expect(piecesOf(budget)).toBe(1_000);
});

test('the next turn of a budget comes after the callbacks that the event loop has ready', async () => {
  const log: string[] = [];
  setImmediate(() => log.push('immediate'));
  await new TurnBudget().next();
  expect(log).toEqual(['immediate']);
});

test('callers that share a turn budget all wait, and it is full again', async () => {
  const budget = new TurnBudget();
  piecesOf(budget);
  await Promise.all([budget.next(), budget.next()]);
  expect(piecesOf(budget)).toBe(1_000);
});

const same = (value: string): string => value;
const reason = new Error('gave up');

test('the value for a waiter is made when the waiter is served', async () => {
  const line = new WaitLine<{ text: string }>();
  const given = { text: 'now' };
  const waiting = line.wait(({ text }) => text);
  line.give(given);
  given.text = 'later';
  expect(await waiting).toBe('now');
});

test('a waiter whose signal fires leaves its line at once, wherever it is in the line', async () => {
  const line = new WaitLine<string>();
  const controllers = Array.from({ length: 5 }, () => new AbortController());
  const waiting = controllers.map(({ signal }) => watch(line.wait(same, signal)));
  for (const i of [2, 0, 4]) controllers[i]?.abort(reason);
  expect(line.size).toBe(2);
  line.giveAll('given');
  await settled();
  expect(waiting.map(({ value }) => value)).toEqual([reason, 'given', reason, 'given', reason]);
  for (const { signal } of controllers) expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a waiter whose signal has fired does not join the line', async () => {
  const line = new WaitLine<string>();
  expect(await rejectionOf(line.wait(same, AbortSignal.abort(reason)))).toBe(reason);
  expect(line.size).toBe(0);
});

test('giveAll serves the waiters that are in line when it is called', async () => {
  const line = new WaitLine<string>();
  const joined: ReturnType<typeof watch>[] = [];
  const join = (value: string): string => {
    joined.push(watch(line.wait(same)));
    return value;
  };
  const first = watch(line.wait(join));
  line.giveAll('a');
  await settled();
  expect([first.value, joined[0]?.state, line.size]).toEqual(['a', 'pending', 1]);
});

test('failAll rejects all waiters', async () => {
  const line = new WaitLine<string>();
  const { signal } = new AbortController();
  const waiting = [watch(line.wait(same)), watch(line.wait(same, signal))];
  line.failAll(reason);
  await settled();
  expect(waiting.map(({ state, value }) => [state, value])).toEqual(Array(2).fill(['rejected', reason]));
  expect([line.size, getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
});

test('the waiters of a group leave their line together, and no others do', async () => {
  const line = new WaitLine<string>();
  const group = new WaitGroup<string>();
  const [first, other, second] = [
    watch(line.wait(same, undefined, group)),
    watch(line.wait(same)),
    watch(line.wait(same, undefined, group)),
  ];
  group.dismiss('dismissed');
  expect([line.size, group.waiters.size]).toEqual([1, 0]);
  line.give('given');
  group.dismiss('again');
  await settled();
  expect([first.value, other.value, second.value]).toEqual(['dismissed', 'given', 'dismissed']);
});

test('a group does not hold waiters that were served or aborted', () => {
  const line = new WaitLine<string>();
  const group = new WaitGroup<string>();
  const controller = new AbortController();
  void line.wait(same, undefined, group);
  line.wait(same, controller.signal, group).catch(() => undefined);
  line.give('a');
  controller.abort();
  expect(group.waiters.size).toBe(0);
});

test('a ring queue grows and shrinks by the hundred thousand, and keeps its order', () => {
  const queue = new RingQueue<number>();
  let [pushed, taken] = [0, 0];
  for (const [pushes, takes] of [
    [100_000, 99_990],
    [30_000, 5],
    [200_000, 230_000],
    [16_385, 16_385],
  ] as const) {
    for (let i = 0; i < pushes; i++) queue.push(pushed++);
    for (let i = 0; i < takes; i++) if (queue.shift() !== taken++) expect.fail(`${taken} is out of order`);
    expect(queue.size).toBe(pushed - taken);
  }
});

const operation = fc.constantFrom('push' as const, 'push' as const, 'unshift' as const, 'shift' as const);
testProperty(
  'a ring queue behaves like an array',
  fc.property(fc.array(operation, { maxLength: 200, size: 'max' }), (operations) => {
    const [queue, model] = [new RingQueue<number | undefined>(), [] as (number | undefined)[]];
    for (const [nth, what] of operations.entries()) {
      const i = nth % 5 === 0 ? undefined : nth;
      if (what === 'shift') expect(queue.shift()).toBe(model.shift());
      else {
        queue[what](i);
        model[what](i);
      }
      expect([queue.size, queue.first]).toEqual([model.length, model[0]]);
    }
    expect([...queue]).toEqual(model);
  }),
  1_000,
);
