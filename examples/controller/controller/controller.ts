import { ItemExponentialFailureRateLimiter, RateLimitingQueue, type MetricsProvider } from 'escapement';
import { directoryKey, isDirectory, keyOfSource, ROOT } from './keys.ts';
import { listKeys } from './list-keys.ts';
import type { Tell } from './news.ts';
import { Reconciler, type Reconciled } from './reconciler.ts';
import { TreeWatcher } from './tree-watcher.ts';

export interface ControllerOptions {
  readonly sourceDirectory: string;
  readonly outputDirectory: string;
  readonly metrics: MetricsProvider;
  readonly tell: Tell;
  /** Files that are worked on at once. */
  readonly workers: number;
  /** How often a file that fails is tried again. */
  readonly maxRetries: number;
  /** Before the first retry; doubled for each other one. */
  readonly retryDelayMs: number;
  /** From one look at everything to the next. */
  readonly resyncMs: number;
}

/** The longest time between two retries. */
const MAX_RETRY_DELAY_MS = 30_000;

/**
 * Keeps the output directory as the source directory wants it.
 *
 *      an event ─────┐                          ┌──► reconcile a file
 *      a listing ────┤    RateLimitingQueue     │
 *      a retry ──────┼──► each key once,   ──► worker
 *      the resync ───┘    never at two workers  │
 *                                               └──► list a directory: its files and directories are keys
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #tell: Tell;
  readonly #queue: RateLimitingQueue<string>;
  readonly #watcher: TreeWatcher;
  readonly #reconciler: Reconciler;

  constructor(options: ControllerOptions) {
    const { sourceDirectory, outputDirectory, metrics, retryDelayMs } = options;
    const limiter = new ItemExponentialFailureRateLimiter<string>({
      baseDelayMs: retryDelayMs,
      maxDelayMs: MAX_RETRY_DELAY_MS,
    });
    this.#options = options;
    this.#tell = options.tell;
    this.#queue = new RateLimitingQueue(limiter, { name: 'settings', metrics });
    this.#reconciler = new Reconciler(sourceDirectory, outputDirectory);
    this.#watcher = new TreeWatcher(sourceDirectory, (path) => {
      this.#tell({ kind: 'event', path });
      this.#want(keyOf(path));
    });
  }

  /** Keys that are ready, are in work, and wait for their time: a retry, or the resync. */
  get load(): { readonly depth: number; readonly inWork: number; readonly waiting: number } {
    return { depth: this.#queue.length, inWork: this.#queue.processing, waiting: this.#queue.waiting };
  }

  /** Works until `stop`. */
  async run(): Promise<void> {
    const { workers, maxRetries } = this.#options;
    this.resync();
    await this.#queue.run((key, { numRequeues }) => this.#work(key, numRequeues), {
      concurrency: workers,
      maxRetries,
      onError: (error, key) => {
        this.#tell({ kind: 'failed', key, error });
      },
      onDrop: (error, key) => {
        this.#tell({ kind: 'dropped', key, error });
      },
    });
  }

  /** Looks at everything: now, and not when it is time. */
  resync(): void {
    this.#want(ROOT);
  }

  /** Watches no more, and finishes what is queued. @returns the files whose retry was still to come. */
  async stop(): Promise<string[]> {
    this.#watcher.close();
    await this.#queue.shutDownWithDrain();
    return this.#queue.shutDown().filter((key) => key !== ROOT);
  }

  #want(key: string): void {
    this.#tell({ kind: 'wanted', key });
    this.#queue.add(key);
  }

  async #work(key: string, retries: number): Promise<void> {
    this.#tell({ kind: 'started', key, retries });
    this.#tell({ kind: 'done', key, result: await this.#process(key) });
  }

  async #process(key: string): Promise<Reconciled | 'listed'> {
    if (!isDirectory(key)) return this.#reconciler.reconcile(key);
    const { sourceDirectory, outputDirectory, resyncMs } = this.#options;
    if (key === ROOT) this.#queue.addAfter(ROOT, resyncMs);
    try {
      this.#watcher.watch(key);
    } finally {
      for (const found of await listKeys(sourceDirectory, outputDirectory, key))
        this.#wantUnlessFailing(found);
    }
    return 'listed';
  }

  /** What has failed comes back by itself, and not before its time. */
  #wantUnlessFailing(key: string): void {
    if (this.#queue.numRequeues(key) === 0) this.#want(key);
  }
}

/** Of whatever an event names: without a look at the disk, what is no source can only be a directory. */
function keyOf(path: string): string {
  return keyOfSource(path) ?? directoryKey(path);
}
