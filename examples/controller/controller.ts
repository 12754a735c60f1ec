/**
 * Keeps an output directory as a source directory wants it: each `*.json` below the source is rendered to a `*.conf` below the output,
 * rendered again when it changes, and removed when it is removed.
 *
 *      events of fs.watch ──┐                         ┌──► a file: read both, then write, remove or do nothing
 *      listed directories ──┼──► RateLimitingQueue ──► worker
 *      retries, resync ─────┘    each key once,       └──► a directory: watch it, list it, add what is in it
 *                                never at two workers
 *
 * Events are hints. A key is a path ('team/app.json', 'team/', or '/' for the root), not what happened to it: the worker reads source and
 * output, and makes them agree. So ten events may become one run, an event too many does no harm, and what fails is tried again.
 */
import { watch, type FSWatcher } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ItemExponentialFailureRateLimiter, RateLimitingQueue, type MetricsProvider } from 'escapement';

const ROOT = '/';
const MARK = '# Rendered from ';
const MAX_RETRY_DELAY_MS = 30_000;
const SETTLE_MS = 20;

export type Result = 'written' | 'removed' | 'unchanged' | 'listed' | 'failed' | 'gave up';

export interface ControllerOptions {
  readonly source: string;
  readonly output: string;
  /** Keys that are worked on at once. */
  readonly workers: number;
  /** Retries of a key that fails, before it is given up until its next event or the next resync. */
  readonly maxRetries: number;
  /** Delay of the first retry; doubled for each further one. */
  readonly retryDelayMs: number;
  /** How often everything is listed, because events can be lost. */
  readonly resyncMs: number;
  readonly metrics?: MetricsProvider;
  /** Called for each key when a worker has done with it. */
  readonly report: (result: Result, key: string, error?: unknown) => void;
}

export class Controller {
  readonly #options: ControllerOptions;
  readonly #source: string;
  readonly #output: string;
  readonly #queue: RateLimitingQueue<string>;
  readonly #watchers = new Map<string, FSWatcher>();
  #isStopped = false;

  constructor(options: ControllerOptions) {
    const { source, output, retryDelayMs, metrics } = options;
    this.#options = options;
    this.#source = resolve(source);
    this.#output = resolve(output);
    const limiter = new ItemExponentialFailureRateLimiter<string>({
      baseDelayMs: retryDelayMs,
      maxDelayMs: Math.max(retryDelayMs, MAX_RETRY_DELAY_MS),
    });
    this.#queue = new RateLimitingQueue(limiter, { name: 'settings', ...(metrics && { metrics }) });
  }

  /** Works until `stop`. */
  async run(): Promise<void> {
    const { workers, maxRetries, report } = this.#options;
    this.resync();
    await this.#queue.run(
      async (key) => {
        report(await this.#process(key), key);
      },
      {
        concurrency: workers,
        maxRetries,
        onError: (error, key) => {
          report('failed', key, error);
        },
        onDrop: (error, key) => {
          report('gave up', key, error);
        },
      },
    );
  }

  /** Lists everything now. */
  resync(): void {
    this.#queue.add(ROOT);
  }

  /** Watches no more, and finishes what is queued. Returns the keys that waited for their time, as a retry does. */
  async stop(): Promise<string[]> {
    this.#isStopped = true;
    for (const watcher of this.#watchers.values()) watcher.close();
    await this.#queue.shutDownWithDrain();
    return this.#queue.shutDown().filter((key) => key !== ROOT);
  }

  #process(key: string): Promise<Result> {
    return key.endsWith('/') ? this.#list(key) : this.#reconcile(key);
  }

  /**
   *      source             output               then
   *      ─────────────────  ───────────────────  ──────────────────────────────
   *      the same           the same             unchanged
   *      settings           nothing, or other    written
   *      no file            rendered by us       removed
   *      no file            not rendered by us   unchanged
   *      settings           not rendered by us   failed
   *      a syntax error     anything             failed; the output stays as it is
   */
  async #reconcile(key: string): Promise<Result> {
    const output = join(this.#output, key.replace(/json$/, 'conf'));
    const source = await unlessMissing(readFile(join(this.#source, key), 'utf8'));
    const desired = source === undefined ? undefined : render(key, source);
    const actual = await unlessMissing(readFile(output, 'utf8'));
    if (desired === actual) return 'unchanged';
    const isForeign = actual !== undefined && !actual.startsWith(MARK);
    if (desired === undefined) return isForeign ? 'unchanged' : this.#remove(output);
    if (isForeign) throw new Error(`${output} exists, and was not rendered by this controller`);
    await mkdir(dirname(output), { recursive: true });
    await writeFile(`${output}.tmp`, desired);
    await rename(`${output}.tmp`, output); // no reader sees half of it
    return 'written';
  }

  async #remove(output: string): Promise<Result> {
    await rm(output);
    try {
      for (let parent = dirname(output); parent !== this.#output; parent = dirname(parent))
        await rmdir(parent);
    } catch {
      // It is not empty.
    }
    return 'removed';
  }

  /** Watches first and lists then: what is made between the two is listed, or is an event, or both. */
  async #list(directory: string): Promise<Result> {
    if (directory === ROOT) this.#queue.addAfter(ROOT, this.#options.resyncMs);
    this.#watch(directory);
    const sources = await unlessMissing(readdir(join(this.#source, directory), { withFileTypes: true }));
    const outputs = await unlessMissing(readdir(join(this.#output, directory), { withFileTypes: true }));
    // A disk that is not mounted must not empty the output.
    if (sources === undefined && directory === ROOT) throw new Error(`${this.#source} does not exist`);
    for (const entry of [...(sources ?? []), ...(outputs ?? [])]) {
      const path = childOf(directory, entry.name);
      const key = entry.isDirectory() ? `${path}/` : path.replace(/\.conf$/, '.json');
      const isSetting = entry.isDirectory() || key.endsWith('.json');
      // What has failed comes back by itself, and not before its time.
      if (isSetting && this.#queue.numRequeues(key) === 0) this.#queue.add(key);
    }
    return 'listed';
  }

  /** One watcher for each directory, none for files: editors replace a file when they save it, and its watcher then hears no more. */
  #watch(directory: string): void {
    this.#watchers.get(directory)?.close();
    this.#watchers.delete(directory);
    if (this.#isStopped) return;
    try {
      const watcher = watch(join(this.#source, directory), (_, name) => {
        const path = childOf(directory, name ?? '');
        // After a moment, so that most files are read when they are written completely, and a burst of events is one run.
        this.#queue.addAfter(/\.json$|\/$/.test(path) ? path : `${path}/`, SETTLE_MS);
      });
      watcher.on('error', () => {
        this.#queue.add(directory); // Windows: the directory was removed
      });
      this.#watchers.set(directory, watcher);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
}

function childOf(directory: string, name: string): string {
  return directory === ROOT ? name : directory + name;
}

/** Renders JSON as sorted lines: `{ "server": { "port": 80 } }` is `server.port = 80`. @throws SyntaxError. */
export function render(key: string, json: string): string {
  const settings: unknown = JSON.parse(json);
  if (!isBranch(settings)) throw new SyntaxError(`${key} must be a JSON object`);
  return [`${MARK}${key}. Changes in this file are overwritten.`, ...linesOf(settings, '').sort(), ''].join(
    '\n',
  );
}

function linesOf(branch: object, prefix: string): string[] {
  return Object.entries(branch).flatMap(([name, value]: [string, unknown]) =>
    isBranch(value) ? linesOf(value, `${prefix}${name}.`) : [`${prefix}${name} = ${JSON.stringify(value)}`],
  );
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}
