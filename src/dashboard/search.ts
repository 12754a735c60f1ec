import { EscapementError } from '../core/errors.ts';
import { nextHostTurn } from '../core/own-turn.ts';
import { Serial } from '../core/serial.ts';
import { isUnavailable } from '../tasks/broker/broker-errors.ts';
import { httpErrorOf, internalError } from '../tasks/http/http-error.ts';
import type { QueueView } from '../tasks/http/asynqmon-json.ts';
import { TASK_CHANGES, TASK_STATES, type TaskChange, type TaskState } from '../tasks/task-state.ts';
import {
  MAX_MATCHES,
  type ChangeLine,
  type ErrorJson,
  type SearchFilter,
  type SearchLine,
  type TaskJson,
} from './dashboard-json.ts';
import { Runs, taskForPage } from './dashboard-views.ts';
import { Matcher } from './search-filter.ts';
import type { SourceTask, TasksSource } from './tasks-source.ts';

/**
 * Searches.
 *
 * HOW. A search reads pieces of a queue, compares the tasks of each, and waits for as long as the piece took. All searches of a
 * dashboard take turns: one piece is read at a time, so the broker is at most half busy with them, however many there are. A search
 * holds the matches that are not sent yet, and ends when the client leaves, because its stream is not read any more.
 *
 * A change first finds all tasks of a queue, then changes them: changes would move the tasks that are still to be read.
 */
export class Searches {
  readonly #source: TasksSource;
  readonly #onError: (error: unknown) => void;
  readonly #pace = new Pace();

  /** @param onError - receives errors that the client does not see. */
  constructor(source: TasksSource, onError: (error: unknown) => void) {
    this.#source = source;
    this.#onError = onError;
  }

  /** Makes lines of JSON, each a `SearchLine`. */
  async *search(filter: SearchFilter, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const found: TaskJson[] = [];
    const sent = new Set<string>();
    const progress = { scanned: 0, total: 0, matched: 0 };
    const line = (end?: Pick<SearchLine, 'isDone' | 'error'>): Uint8Array => {
      const tasks = found.splice(0);
      return lineOf({ ...progress, ...(tasks.length > 0 && { tasks }), ...end } satisfies SearchLine);
    };
    try {
      const { scans, total, runs, matcher } = await this.#plan(filter);
      progress.total = total;
      const lines = new LineTimer();
      yield line();
      for (const scan of scans) {
        for await (const tasks of this.#pieces(scan, signal)) {
          progress.scanned += tasks.length;
          for (const task of await matcher.matchesOf(tasks)) {
            const key = `${task.queue}\n${task.id}`;
            if (sent.has(key)) continue; // a task may come twice
            progress.matched++;
            if (sent.size >= MAX_MATCHES) continue;
            sent.add(key);
            found.push(taskForPage(task, runs));
          }
          if (lines.isDue) yield line();
        }
        if (signal.aborted) return;
      }
      yield line({ isDone: true });
    } catch (error) {
      yield line({ error: this.#errorOf(error) });
    }
  }

  /** Makes lines of JSON, each a `ChangeLine`. */
  async *change(filter: SearchFilter, change: TaskChange, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const progress = { scanned: 0, total: 0, matched: 0, changed: 0, refused: 0 };
    const line = (end?: Pick<ChangeLine, 'isDone' | 'error'>): Uint8Array =>
      lineOf({ ...progress, ...end } satisfies ChangeLine);
    try {
      const { scans, total, matcher } = await this.#plan(filter, TASK_CHANGES[change].refused);
      progress.total = total;
      const lines = new LineTimer();
      yield line();
      for (const scan of scans) {
        const found = new Map<string, TaskState>();
        for await (const tasks of this.#pieces(scan, signal)) {
          progress.scanned += tasks.length;
          for (const { id, state } of await matcher.matchesOf(tasks)) found.set(id, state);
          if (lines.isDue) yield line();
        }
        progress.matched += found.size;
        for (const some of slicesOf([...found], CHANGES_AT_ONCE)) {
          if (signal.aborted) return;
          const changed = await this.#pace.run(() => this.#changeEach(scan.queue, some, change));
          progress.changed += changed;
          progress.refused += some.length - changed;
          if (lines.isDue) yield line();
        }
      }
      if (!signal.aborted) yield line({ isDone: true });
    } catch (error) {
      yield line({ error: this.#errorOf(error) });
    }
  }

  /** @param first - states that are scanned before the others: tasks that are changed may get there. */
  async #plan(filter: SearchFilter, first: readonly TaskState[] = []): Promise<Plan> {
    const [infos, servers] = await Promise.all([this.#source.queueInfos(), this.#source.servers()]);
    const states = filter.state ?? TASK_STATES;
    const parts = [states.filter((one) => first.includes(one)), states.filter((one) => !first.includes(one))];
    const queues = infos.filter(({ queue }) => filter.queue?.includes(queue) ?? true);
    const runs = new Runs(servers);
    return {
      scans: queues.flatMap(({ queue }) => parts.map((part) => ({ queue, states: part }))),
      total: queues.reduce((sum, info) => sum + countIn(info, states), 0),
      ...{ runs, matcher: new Matcher(filter, runs) },
    };
  }

  /** Reads a queue; it may be removed meanwhile. */
  async *#pieces({ queue, states }: Scan, signal: AbortSignal): AsyncGenerator<readonly SourceTask[]> {
    if (states.length === 0) return;
    const pieces: AsyncIterator<readonly SourceTask[], unknown> =
      this.#source.scan?.(queue, { states, pageSize: PIECE_SIZE }) ?? this.#readPages(queue, states);
    try {
      for (;;) {
        const piece = await this.#pace.run(() => pieces.next());
        if (piece.done === true || signal.aborted) return;
        yield piece.value;
      }
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_QUEUE_NOT_FOUND') throw error;
    }
  }

  /** Over the HTTP API, and of brokers without the operation: tasks that move meanwhile may be missed. */
  async *#readPages(queue: string, states: readonly TaskState[]): AsyncGenerator<readonly SourceTask[]> {
    for (const state of states) {
      const groups = state === 'aggregating' ? await this.#source.groups(queue) : [{ group: undefined }];
      for (const { group } of groups) {
        for (let page = 1, isLast = false; !isLast; page++) {
          const at = { page, pageSize: PAGE_SIZE };
          const tasks = await this.#source.list(queue, state, at, group);
          yield tasks;
          isLast = tasks.length < PAGE_SIZE;
        }
      }
    }
  }

  /** Returns how many tasks were changed. A task that is in another state than it was is refused. */
  async #changeEach(queue: string, tasks: readonly Found[], change: TaskChange): Promise<number> {
    const outcomes = await Promise.allSettled(
      tasks.map(async ([id, state]) => {
        if (TASK_CHANGES[change].refused.includes(state)) return 0;
        const task = await this.#source.getTaskInfo(queue, id);
        return task.state === state ? this.#source.change(queue, { id }, change) : 0;
      }),
    );
    let changed = 0;
    for (const one of outcomes) {
      if (one.status === 'fulfilled') changed += one.value;
      else if (isUnavailable(one.reason)) throw one.reason;
    }
    return changed;
  }

  #errorOf(error: unknown): ErrorJson {
    const httpError = httpErrorOf(error);
    if (httpError === undefined) this.#onError(error);
    const { message } = httpError ?? internalError();
    return { message, ...(error instanceof EscapementError && { code: error.code }) };
  }
}

/** A queue to scan, in some states. */
interface Scan {
  readonly queue: string;
  readonly states: readonly TaskState[];
}

interface Plan {
  readonly scans: readonly Scan[];
  /** Number of tasks to scan. */
  readonly total: number;
  readonly runs: Runs;
  readonly matcher: Matcher;
}

/** A task that matches: its id, and its state at that time. */
type Found = readonly [id: string, state: TaskState];

/** Of the HTTP API. */
const PAGE_SIZE = 200;

/** Tasks that are changed in one turn of the event loop: it takes a millisecond or two. */
const CHANGES_AT_ONCE = 50;

function countIn(info: QueueView, states: readonly TaskState[]): number {
  return states.reduce((sum, state) => sum + info[state], 0);
}

function* slicesOf<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}

function lineOf(line: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

/** Time between two lines of a search, in milliseconds. */
const LINE_MS = 200;

/** When the next line is due. */
class LineTimer {
  #lastMs = performance.now();

  get isDue(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs < LINE_MS) return false;
    this.#lastMs = nowMs;
    return true;
  }
}

/** Tasks of a piece; on Redis, a script reads 100 at most. */
const PIECE_SIZE = 300;

/** Work after which there is a pause, in milliseconds: a timeout for each piece would take longer than the piece. */
const WORK_MS = 5;

/** Reads one piece at a time, and pauses for as long as the pieces took. */
class Pace {
  readonly #serial = new Serial();
  #workedMs = 0;

  /** Calls a function when it is its turn. @returns its result, after the pause. */
  run<R>(read: () => Promise<R>): Promise<R> {
    return this.#serial.run(() => this.#measure(read));
  }

  async #measure<R>(read: () => Promise<R>): Promise<R> {
    const startMs = performance.now();
    const result = await read();
    this.#workedMs += performance.now() - startMs;
    if (this.#workedMs < WORK_MS) {
      await nextHostTurn(); // an embedded broker reads without one
    } else {
      const pauseMs = this.#workedMs;
      this.#workedMs = 0;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return result;
  }
}
