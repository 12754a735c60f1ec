/*
 * What must hold in every runtime: the same program for all. A check passes if it resolves. Times have lower bounds only, so that a
 * busy machine fails none.
 */
import {
  DelayedOperationPurgatory,
  ItemExponentialFailureRateLimiter,
  ManualClock,
  RateLimitingQueue,
  SystemTimer,
  TimerTask,
  WorkQueue,
} from 'escapement';
import * as timers from 'escapement/timers';
import { scheduler, setInterval as intervals, setTimeout as sleep } from 'escapement/timers/promises';

/** What a runtime has and others lack. */
export interface RuntimeFeatures {
  /** Whether `AsyncLocalStorage` can be had. */
  readonly asyncContext: boolean;
}

type Check = (features: RuntimeFeatures) => void | Promise<void>;

function assert(isTrue: boolean, claim: string): asserts isTrue {
  if (!isTrue) throw new Error(`not true: ${claim}`);
}

function equal(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`${what}: expected ${wanted}, got ${got}`);
}

/** The 32-bit generator of Lehmer: the same delays in each runtime. */
function randomDelays(count: number, mostMs: number): number[] {
  let state = 42;
  return Array.from({ length: count }, () => (state = (state * 48_271) % 2_147_483_647) % mostMs);
}

export const CHECKS: Readonly<Record<string, Check>> = {
  'no callback comes early, and all come': async () => {
    using timer = new SystemTimer();
    const lags = await Promise.all(
      randomDelays(500, 200).map((delayMs) => {
        const startMs = performance.now();
        return new Promise<number>((resolve) => {
          timer.schedule(delayMs, () => resolve(performance.now() - startMs - delayMs));
        });
      }),
    );
    assert(Math.min(...lags) >= 0, 'no lag is negative');
    equal(timer.size, 0, 'pending tasks');
  },

  'tasks run in order of their deadlines': async () => {
    using timer = new SystemTimer();
    const order: number[] = [];
    const nowMs = timer.clock.now() + 100; // nothing is due yet, even if this loop is held up
    for (const delayMs of [60, 20, 40, 0, 80])
      timer.scheduleAt(nowMs + delayMs, (it: number) => order.push(it), delayMs);
    await timer.sleep(200);
    equal(order, [0, 20, 40, 60, 80], 'order');
  },

  'a cancelled task never runs, and a moved one runs once': async () => {
    class Task extends TimerTask {
      runs = 0;
      run(): void {
        this.runs++;
      }
    }
    using timer = new SystemTimer();
    const [cancelled, moved] = [new Task(10), new Task(10)];
    timer.add(cancelled);
    timer.add(moved);
    assert(cancelled.cancel(), 'cancel() took effect');
    timer.add(moved);
    const id = timer.schedule(10, () => assert(false, 'the callback was cancelled'));
    assert(timer.reschedule(id, 5) && timer.cancel(id) && !timer.cancel(id), 'an id is cancelled once');
    await timer.sleep(40);
    equal([cancelled.runs, cancelled.isCancelled, moved.runs, moved.pending], [0, true, 1, false], 'tasks');
  },

  'a million timers wait for one wake-up, and all but the cancelled ones run': async () => {
    using timer = new SystemTimer();
    const COUNT = 1_000_000;
    let runs = 0;
    const run = (): unknown => runs++;
    const ids = randomDelays(COUNT, 500).map((delayMs) => timer.schedule(delayMs, run));
    for (let i = 0; i < COUNT; i += 2) timer.cancel(ids[i] as (typeof ids)[number]);
    const left = COUNT - runs;
    assert(timer.size <= left && timer.size > 0, 'the others are pending');
    while (timer.size > 0) await timer.sleep(10);
    equal(runs, COUNT / 2, 'runs');
  },

  'a delay beyond 24.8 days, the limit of the host, waits': async () => {
    using timer = new SystemTimer();
    let isEarly = false;
    timer.schedule(2 ** 31 + 5, () => (isEarly = true));
    timer.schedule(1e12, () => (isEarly = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    equal([isEarly, timer.size], [false, 2], 'early callback, pending');
  },

  'an unreferenced timer works, and a reference is a reference where the runtime counts none': async () => {
    using timer = new SystemTimer();
    timer.unref();
    equal(timer.hasRef(), false, 'hasRef');
    const alive = setInterval(() => undefined, 5); // of the host: the timer does not keep the process alive
    await new Promise<void>((resolve) => timer.schedule(5, resolve));
    clearInterval(alive);
    timer.ref();
    equal(timer.hasRef(), true, 'hasRef');
  },

  'an error of a task goes to onError, and the others run': async () => {
    const errors: unknown[] = [];
    using timer = new SystemTimer({ onError: (error) => void errors.push((error as Error).message) });
    timer.schedule(5, () => {
      throw new Error('mine');
    });
    await timer.sleep(10);
    equal(errors, ['mine'], 'errors');
  },

  'virtual time moves as it is told to': () => {
    const clock = new ManualClock();
    using timer = new SystemTimer({ clock });
    const ran: number[] = [];
    for (const delayMs of [86_400_000, 1]) timer.schedule(delayMs, (it: number) => ran.push(it), delayMs);
    clock.advance(86_399_999);
    equal(ran, [1], 'after a day less a millisecond');
    clock.advance(1);
    equal([ran, clock.pendingWakeups], [[1, 86_400_000], 0], 'after a day');
  },

  'asyncContext keeps the context, or is a clear error': async ({ asyncContext }) => {
    if (!asyncContext) {
      try {
        new SystemTimer({ asyncContext: true });
      } catch (error) {
        equal((error as { code: string }).code, 'ERR_FEATURE_UNAVAILABLE', 'code');
        return;
      }
      throw new Error('asyncContext: true was accepted');
    }
    const { process } = globalThis as unknown as { process: { getBuiltinModule(name: string): AsyncHooks } };
    const storage = new (process.getBuiltinModule('node:async_hooks').AsyncLocalStorage)<string>();
    using timer = new SystemTimer({ asyncContext: true });
    const seen = await new Promise((resolve) => {
      storage.run('mine', () => timer.schedule(1, () => resolve(storage.getStore())));
    });
    equal(seen, 'mine', 'store');
  },

  'the drop-in functions keep arguments, order, and what is cleared': async () => {
    const calls: unknown[] = [];
    timers.clearTimeout(timers.setTimeout(() => calls.push('cleared'), 1));
    timers.setTimeout((...args: unknown[]) => calls.push(args), 5, 'a', 1);
    const refreshed = timers.setTimeout(() => calls.push('refreshed'), 15);
    refreshed.refresh().unref().ref();
    equal(refreshed.hasRef(), true, 'hasRef');
    const byNumber = timers.setTimeout(() => calls.push('cleared by its number'), 5);
    timers.clearTimeout(Number(byNumber));
    await new Promise<void>((resolve) => {
      let ticks = 0;
      const interval = timers.setInterval(() => {
        if (++ticks < 3) return;
        timers.clearInterval(interval);
        resolve();
      }, 10);
    });
    equal(calls, [['a', 1], 'refreshed'], 'calls');
    // A timeout of the host is cleared by ours, too.
    const host = setTimeout(() => calls.push('host'), 1);
    timers.clearTimeout(host);
    timers.clearImmediate(timers.setImmediate(() => calls.push('immediate')));
    await new Promise<void>((resolve) => timers.setImmediate(resolve));
    await sleep(10);
    equal(calls.length, 2, 'calls');
  },

  'the promise forms resolve, repeat and abort': async () => {
    equal(await sleep(5, 'value'), 'value', 'value');
    let ticks = 0;
    for await (const tick of intervals(3, 'tick')) if (tick === 'tick' && ++ticks === 3) break;
    equal(ticks, 3, 'ticks');
    await scheduler.wait(2);
    await scheduler.yield();
    const controller = new AbortController();
    const aborted = sleep(60_000, undefined, { signal: controller.signal });
    controller.abort();
    equal(await aborted.catch((error: unknown) => (error as Error).name), 'AbortError', 'rejection');
  },

  'a purgatory completes by key and by time': async () => {
    const purgatory = new DelayedOperationPurgatory<string>('runtime');
    let isThere = false;
    const waiting = purgatory.wait(['key'], () => (isThere ? 'answer' : undefined), { timeoutMs: 60_000 });
    isThere = true;
    equal(purgatory.checkAndComplete('key'), 1, 'completed');
    equal(await waiting, 'answer', 'answer');
    const late = purgatory.wait(['key'], () => undefined, { timeoutMs: 10 });
    equal(
      await late.catch((error: unknown) => (error as { code: string }).code),
      'ERR_OPERATION_EXPIRED',
      'code',
    );
    equal([purgatory.watched, purgatory.numDelayed], [0, 0], 'left');
    purgatory.close();
  },

  'work queues deduplicate, delay and retry': async () => {
    const queue = new WorkQueue<string>();
    for (const item of ['a', 'b', 'a']) queue.add(item);
    const seen: string[] = [];
    queue.shutDown();
    for await (const lease of queue) {
      seen.push(lease.item);
      lease.done();
    }
    equal(seen, ['a', 'b'], 'items');

    const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 100 });
    const retries = new RateLimitingQueue<string>(limiter);
    let tries = 0;
    retries.addAfter('c', 5);
    await retries.run(() => {
      if (++tries < 3) throw new Error('not yet');
      retries.shutDown();
    });
    equal(tries, 3, 'tries');
  },
};

interface AsyncHooks {
  AsyncLocalStorage: new <T>() => { run(store: T, call: () => void): void; getStore(): T | undefined };
}

/** Outcome of one check; `error` is missing if it passed. */
export interface CheckResult {
  readonly name: string;
  readonly error?: string;
}

/** Runs every check, one after the other. */
export async function runChecks(features: RuntimeFeatures): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      await check(features);
      results.push({ name });
    } catch (error) {
      results.push({ name, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
  return results;
}
