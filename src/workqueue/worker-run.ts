import { isAbortError, isThenable, requireFunction, requireSignal } from '../core/validate.ts';
import { guarded } from '../core/report-uncaught.ts';
import { TurnBudget } from '../core/own-turn.ts';
import { checkOptions, integer, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { WaitGroup } from '../core/wait-line.ts';
import type { ItemQueue } from './item-queue.ts';
import type { ItemEntry } from './item-table.ts';

/** The second argument of a worker. */
export interface WorkerContext {
  /** Aborted when the run must stop. */
  readonly signal: AbortSignal;
  /** How often the item has failed since it last succeeded; 0 in a queue without a rate limit. */
  readonly numRequeues: number;
}

/** Processes one item, which is done when the worker returns or resolves, and has failed when it throws or rejects. */
export type Worker<T> = (item: T, context: WorkerContext) => unknown;

/** Options of `run`. */
export interface RunOptions<T> extends SignalOptions {
  /** Most items that are processed at once: an integer from 1 to 65 536. @default 1 */
  readonly concurrency?: number | undefined;
  /** Stops the run when it is aborted. @default never */
  readonly signal?: AbortSignal | undefined;
  /** Called with each error that a worker throws. @default the first error stops the run, which rejects with it */
  readonly onError?: ((error: unknown, item: NoInfer<T>) => void) | undefined;
}

/** An entry as it was taken: before the worker receives it, the lease may end, and the entry be taken again. */
interface TakenEntry<T> {
  readonly entry: ItemEntry<T>;
  readonly item: T;
  readonly lease: number;
}

/** Handles the results of workers. The methods must not throw. */
export interface Outcomes<T> {
  numRequeues(key: unknown): number;
  succeeded(key: unknown): void;
  /** @returns whether the run may go on. */
  failed(error: unknown, item: T, entry: ItemEntry<T>): boolean;
}

/** Each unit has a loop from the start of the run, which takes 2.5 KB: a billion of them would exhaust the memory. */
const MAX_CONCURRENCY = 2 ** 16;

export const RUN_OPTIONS = {
  signal: [requireSignal, undefined],
  concurrency: [integer(1, MAX_CONCURRENCY), 1],
  onError: [requireFunction, undefined],
} satisfies OptionTable<RunOptions<unknown>>;

export function requireRunOptions<T>(
  subject: string,
  worker: Worker<T>,
  options: RunOptions<T>,
  table: OptionTable<RunOptions<unknown>> = RUN_OPTIONS,
): void {
  requireFunction('worker', worker);
  checkOptions(subject, options, table);
}

/** Calls `onError`. What that throws is an uncaught exception. */
export function reportWorkerError<T>({ onError }: RunOptions<T>, error: unknown, item: T): void {
  guarded(() => {
    onError?.(error, item);
  });
}

/** The outcomes of a queue that drops failed items. */
export function plainOutcomes<T>(options: RunOptions<T>): Outcomes<T> {
  return {
    numRequeues: () => 0,
    succeeded: () => undefined,
    failed: (error, item) => {
      reportWorkerError(options, error, item);
      return options.onError !== undefined;
    },
  };
}

/**
 * The loop of a controller: take an item, process it, end its lease, and handle success or failure.
 *
 * One loop per unit of concurrency. A worker that returns no promise costs none.
 */
export class WorkerRun<T> {
  readonly #items: ItemQueue<T>;
  readonly #worker: Worker<T>;
  readonly #outcomes: Outcomes<T>;
  /** One for each loop: Node warns of a leak if the workers of many loops listen to one signal. */
  readonly #controllers: AbortController[] = [];
  /** The loops that wait for an item. */
  readonly #waiting = new WaitGroup<ItemEntry<T> | undefined>();
  readonly #budget = new TurnBudget();
  #isStopping = false;
  #aborted: { readonly reason: unknown } | undefined;
  /** The errors that stopped the run. */
  readonly #failures: unknown[] = [];

  constructor(items: ItemQueue<T>, worker: Worker<T>, outcomes: Outcomes<T>) {
    this.#items = items;
    this.#worker = worker;
    this.#outcomes = outcomes;
  }

  async run({ concurrency = 1, signal }: RunOptions<T>): Promise<void> {
    const abort = (): void => {
      this.#stop();
      this.#aborted = { reason: signal?.reason };
      for (const controller of this.#controllers) controller.abort(signal?.reason);
    };
    if (signal?.aborted === true) return;
    signal?.addEventListener('abort', abort);
    try {
      await Promise.all(Array.from({ length: concurrency }, () => this.#serve()));
    } finally {
      signal?.removeEventListener('abort', abort);
    }
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  #stop(): void {
    this.#isStopping = true;
    this.#waiting.dismiss(undefined);
  }

  async #serve(): Promise<void> {
    const controller = new AbortController();
    const context: WorkerContext = { signal: controller.signal, numRequeues: 0 }; // of items that have not failed
    this.#controllers.push(controller);
    await Promise.resolve(); // so that no worker runs before the caller of run has its promise
    while (!this.#isStopping) {
      const taken = takenOf(this.#items.take()) ?? (await this.#next());
      if (taken === undefined) return;
      if (this.#mustStop()) this.#items.putBack(taken.entry, taken.lease);
      else {
        try {
          const result = this.#worker(taken.item, this.#contextFor(taken.entry, context));
          if (isThenable(result)) await result;
          this.#succeeded(taken);
        } catch (error) {
          this.#failed(error, taken);
        }
        if (this.#budget.spend()) await this.#budget.next();
      }
    }
  }

  /** A method, so that TypeScript does not narrow the flag across awaits. */
  #mustStop(): boolean {
    return this.#isStopping;
  }

  /** Not async, which would cost one more promise and three more microtasks per wait. */
  #next(): Promise<TakenEntry<T> | undefined> {
    if (this.#items.hasEnded) return Promise.resolve(undefined);
    return this.#items.wait(takenOf<T>, undefined, this.#waiting);
  }

  #contextFor({ key }: ItemEntry<T>, context: WorkerContext): WorkerContext {
    const numRequeues = this.#outcomes.numRequeues(key);
    return numRequeues === 0 ? context : { signal: context.signal, numRequeues };
  }

  #succeeded({ entry, lease }: TakenEntry<T>): void {
    this.#outcomes.succeeded(entry.key);
    this.#items.finish(entry, lease);
  }

  #failed(error: unknown, { item, entry, lease }: TakenEntry<T>): void {
    if (this.#isInterruption(error)) {
      this.#items.putBack(entry, lease);
      return;
    }
    if (!this.#outcomes.failed(error, item, entry)) {
      this.#failures.push(error);
      this.#stop();
    }
    this.#items.finish(entry, lease);
  }

  /** Whether a worker rejects because of the abort: with the reason itself, or with an AbortError of Node's functions. */
  #isInterruption(error: unknown): boolean {
    return this.#aborted !== undefined && (error === this.#aborted.reason || isAbortError(error));
  }
}

function takenOf<T>(entry: ItemEntry<T> | undefined): TakenEntry<T> | undefined {
  return entry === undefined ? undefined : { entry, item: entry.item as T, lease: entry.lease };
}
