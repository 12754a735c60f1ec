import { setMaxListeners } from 'node:events';
import fc from 'fast-check';
import { WorkQueue } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { watch } from '../workqueue/support/outcome.ts';
import { testProperty } from '../runs.ts';
import { action, claim, weighted, type ValueOf } from './actions.ts';

/** How a job ends: on its own, or because of its signal, which it may also fail to hear. */
type End = 'finish' | 'fail' | 'give up' | 'add and finish' | 'add and fail' | 'add and give up';

type Action = ValueOf<typeof someAction>;

const pick = fc.nat({ max: 100 });
const ENDS: readonly End[] = [
  ...(['finish', 'finish', 'fail', 'give up', 'add and finish', 'add and fail', 'add and give up'] as const),
];
const someAction = weighted(
  [10, action('add', { key: fc.constantFrom('a', 'b', 'c', 'd') })],
  [2, action('run', { concurrency: fc.integer({ min: 1, max: 3 }), hears: fc.boolean() })],
  [2, action('stop', { pick })],
  [10, action('end', { pick, how: fc.constantFrom(...ENDS) })],
);

const REASON = new Error('stop');

interface Job {
  readonly key: string;
  readonly startedAt: number;
  readonly settle: (how: 'finish' | 'fail' | 'give up') => void;
}

/** Runs that come and go on one queue: every add is followed by a processing that begins after it and is not cut short. */
class RunWorld {
  readonly #queue = new WorkQueue<string>();
  readonly #jobs = new Map<string, Job>();
  readonly #controllers: AbortController[] = [];
  readonly #runs: { isOver: boolean; running: number }[] = [];
  readonly #addedAt = new Map<string, number>();
  readonly #processedSince = new Map<string, number>();
  #now = 0;

  async run(steps: readonly (readonly Action[])[]): Promise<void> {
    for (const actions of steps) {
      await this.#step(() => {
        for (const each of actions) this.#do(each);
      });
    }
    for (const controller of this.#controllers) controller.abort(REASON);
    await this.#endAll();
    claim(
      this.#runs.every(({ isOver }) => isOver),
      'a run did not end',
    );
    this.#do({ kind: 'run', concurrency: 2, hears: false });
    const drain = watch(this.#queue.shutDownWithDrain());
    await this.#endAll();
    claim(drain.state === 'resolved', 'the drain did not end');
    claim(this.#runs.at(-1)?.isOver === true, 'the last run did not end');
    for (const [key, addedAt] of this.#addedAt) {
      claim((this.#processedSince.get(key) ?? -1) > addedAt, `an add of ${key} was lost`);
    }
  }

  async #step(act: () => void): Promise<void> {
    act();
    checkQueue(this.#queue);
    for (let i = 0; i < 12; i++) await Promise.resolve();
    checkQueue(this.#queue);
  }

  async #endAll(): Promise<void> {
    for (let i = 0; i < 3 || this.#jobs.size > 0; i++) {
      await this.#step(() => {
        for (const job of [...this.#jobs.values()]) job.settle('finish');
      });
    }
  }

  #do(each: Action): void {
    this.#now++;
    switch (each.kind) {
      case 'add':
        this.#add(each.key);
        return;
      case 'run':
        this.#start(each.concurrency, each.hears);
        return;
      case 'stop':
        this.#controllers[each.pick % Math.max(this.#controllers.length, 1)]?.abort(REASON);
        return;
      case 'end': {
        const job = [...this.#jobs.values()][each.pick % Math.max(this.#jobs.size, 1)];
        if (job === undefined) return;
        if (each.how.startsWith('add')) this.#add(job.key);
        job.settle(each.how.replace('add and ', '') as 'finish');
      }
    }
  }

  #add(key: string): void {
    this.#queue.add(key);
    this.#addedAt.set(key, this.#now);
  }

  #start(concurrency: number, hears: boolean): void {
    const controller = new AbortController();
    const state = { isOver: false, running: 0 };
    const worker = (key: string, { signal }: { signal: AbortSignal }): Promise<void> => {
      claim(!this.#jobs.has(key), `${key} has two holders`);
      claim(!controller.signal.aborted, 'an item was taken after the abort');
      claim(++state.running <= concurrency, `${state.running} are in work at once`);
      return this.#work(key, signal, hears).finally(() => state.running--);
    };
    void this.#queue
      .run(worker, {
        concurrency,
        signal: controller.signal,
        onError: (error) =>
          claim(error === 'failed' || error === REASON, `a worker failed: ${String(error)}`),
      })
      .then(() => {
        claim(state.running === 0, 'a run ended before its workers');
        state.isOver = true;
      });
    this.#controllers.push(controller);
    this.#runs.push(state);
  }

  #work(key: string, signal: AbortSignal, hears: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const startedAt = ++this.#now;
      const settle: Job['settle'] = (how) => {
        this.#jobs.delete(key);
        const isInterrupted = how === 'give up' && signal.aborted;
        if (!isInterrupted) this.#processedSince.set(key, startedAt);
        if (how === 'finish') resolve();
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- told apart from errors of ours
        else reject(how === 'fail' ? 'failed' : REASON);
      };
      this.#jobs.set(key, { key, startedAt, settle });
      if (hears) {
        setMaxListeners(0, signal);
        signal.addEventListener('abort', () => {
          if (this.#jobs.get(key)?.startedAt === startedAt) settle('give up');
        });
      }
    });
  }
}

const steps = fc.array(fc.array(someAction, { minLength: 1, maxLength: 4 }), { maxLength: 50, size: 'max' });

testProperty(
  'whatever runs come and go, no item has two holders, no add is lost and no run hangs',
  fc.asyncProperty(steps, (each) => new RunWorld().run(each)),
);
