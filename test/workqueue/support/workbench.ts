import type { RunOptions, Worker, WorkerContext, WorkQueue } from 'escapement';
import { settled, watch, type Outcome } from './outcome.ts';
import { queueOf } from './take.ts';

interface Job {
  readonly context: WorkerContext;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** A worker whose jobs end when the test says so. */
export class Workbench<T> {
  /** What is being worked on, in the order it was begun. */
  readonly jobs = new Map<T, Job>();
  /** Everything that was ever begun. */
  readonly begun: T[] = [];
  /** The most that were in work at once. */
  most = 0;

  readonly worker: Worker<T> = (item, context) => {
    if (this.jobs.has(item)) throw new Error('an item has two holders');
    this.begun.push(item);
    return new Promise((resolve, reject) => {
      this.jobs.set(item, { context, resolve, reject });
      this.most = Math.max(this.most, this.jobs.size);
    });
  };

  get items(): T[] {
    return [...this.jobs.keys()];
  }

  contextOf(item: T): WorkerContext {
    return this.#job(item).context;
  }

  /** Ends a job, and lets what follows from it happen. */
  async finish(item: T, value?: unknown): Promise<void> {
    this.#end(item).resolve(value);
    await settled();
  }

  async fail(item: T, error: unknown): Promise<void> {
    this.#end(item).reject(error);
    await settled();
  }

  /** Makes a job reject as soon as its signal fires. */
  interruptible(item: T): void {
    const { context } = this.#job(item);
    context.signal.addEventListener('abort', () => this.#end(item).reject(context.signal.reason));
  }

  #end(item: T): Job {
    const job = this.#job(item);
    this.jobs.delete(item);
    return job;
  }

  #job(item: T): Job {
    const job = this.jobs.get(item);
    if (job === undefined) throw new Error(`nobody works on ${String(item)}`);
    return job;
  }
}

/** Returns a queue in which each character is an item, and a bench to work on them. */
export function queueWithBench(items: string): { queue: WorkQueue<string>; bench: Workbench<string> } {
  return { queue: queueOf(items), bench: new Workbench() };
}

interface Running {
  readonly queue: WorkQueue<string>;
  readonly bench: Workbench<string>;
  readonly run: Outcome<void>;
  readonly abort: (reason?: unknown) => void;
}

/** Returns such a queue with a run that has begun its first items, and that `abort` stops. */
export async function running(items: string, concurrency = 1): Promise<Running> {
  const queue = queueOf(items);
  return { queue, ...(await runningOn(queue, { concurrency })) };
}

/** The same for another queue, whose items are there already. */
export async function runningOn<O extends RunOptions<string>>(
  queue: { run(worker: Worker<string>, options: O): Promise<void> },
  options: Omit<O, 'signal'>,
): Promise<Omit<Running, 'queue'>> {
  const bench = new Workbench<string>();
  const controller = new AbortController();
  const run = watch(queue.run(bench.worker, { ...options, signal: controller.signal } as unknown as O));
  await settled();
  return { bench, run, abort: (reason) => controller.abort(reason) };
}
