import { createHash } from 'node:crypto';
import { MINUTE_MS } from '../../core/units.ts';
import { MOST_SET_BACK_MS } from '../broker/broker-settings.ts';
import type { NewTask, ScheduleEntry } from '../broker/broker.ts';
import type { CronSpec } from './cron-spec.ts';
import { formatGoDuration, formatUnixDate, quoteGoString } from '../go-text.ts';
import { DEFAULT_QUEUE, newTaskOf, OPTION_ROWS, type OptionKind, type TaskOptions } from '../task-options.ts';
import type { Task } from '../task.ts';
import type { Backfill } from './scheduler-options.ts';

/**
 * An entry of a scheduler, and its position:
 *
 *      mark        begun           settled          now      next
 *      ──┼───×──×────┼────×───×───────×────×───×─────┼─────────×──►
 *            └──┘                          └───┘
 *        missed: only                 due: with no backfill
 *        with backfill                only the last of them
 *
 * A tick is settled when any scheduler has enqueued it, or when it was refused or given up.
 */
export class ScheduledEntry {
  readonly id: string;
  readonly spec: CronSpec;
  readonly task: Task;
  /** The task's options, overridden by those of the entry. */
  readonly options: TaskOptions;
  readonly #backfill: Backfill | undefined;
  isRemoved = false;
  /** The first tick in the future; `Infinity` if there is none. */
  nextMs = Infinity;
  /** Whether the mark, the latest tick of other schedulers, must be read first. */
  needsMark = false;
  #begunMs = Infinity;
  #settledMs = Infinity;
  /** The latest time that the wall clock has shown. */
  #shownMs = Infinity;
  /** The last tick that any scheduler has enqueued; 0 if there is none. */
  #prevMs = 0;
  #hasReadMark = false;

  constructor(id: string, spec: CronSpec, task: Task, options: TaskOptions, backfill: Backfill | undefined) {
    this.id = id;
    this.spec = spec;
    this.task = task;
    this.options = options;
    this.#backfill = backfill;
  }

  get queue(): string {
    return this.options.queue ?? DEFAULT_QUEUE;
  }

  /** Called when the scheduler starts: ticks count from now on. */
  begin(nowMs: number): void {
    this.#goBackTo(nowMs);
    this.needsMark = this.#backfill !== undefined;
  }

  /** @returns whether a tick has come since the last call. */
  passTo(nowMs: number): boolean {
    if (isFarAhead(Math.max(this.#settledMs, this.#shownMs), nowMs)) this.#goBackTo(nowMs);
    this.#shownMs = Math.max(this.#shownMs, nowMs);
    if (this.nextMs > nowMs) return false;
    this.nextMs = this.spec.next(this.nextMs) ?? Infinity;
    if (this.nextMs > nowMs) return true;
    // A long pause: other schedulers may have enqueued these ticks, and one read is cheaper than an attempt for each.
    this.needsMark = this.#backfill !== undefined;
    this.nextMs = this.spec.next(nowMs) ?? Infinity;
    return true;
  }

  /** @param markMs - the latest tick that was enqueued; undefined if there is none, or if it cannot be read. */
  setMark(markMs: number | undefined, nowMs: number): void {
    this.needsMark = false;
    if (markMs === undefined || isFarAhead(markMs, nowMs)) {
      this.#hasReadMark = true;
      return;
    }
    // At the start it may be long ago: the ticks after it were missed. Later it only saves work.
    this.#settledMs = this.#hasReadMark ? Math.max(this.#settledMs, markMs) : markMs;
    this.#hasReadMark = true;
    this.#prevMs = Math.max(this.#prevMs, markMs);
  }

  /** Returns the ticks to enqueue, oldest first. */
  dueAt(nowMs: number): readonly number[] {
    const live = Math.max(this.#settledMs, this.#begunMs);
    if (this.#backfill === undefined) return newestTicks(this.spec, live, nowMs, 1);
    const { maxAgeMs, maxTicks } = this.#backfill;
    const ticks = newestTicks(this.spec, Math.max(this.#settledMs, nowMs - maxAgeMs), nowMs, maxTicks);
    return ticks.length > 0 ? ticks : newestTicks(this.spec, live, nowMs, 1);
  }

  settle(tickMs: number): void {
    this.#settledMs = Math.max(this.#settledMs, tickMs);
  }

  enqueued(tickMs: number): void {
    this.settle(tickMs);
    this.#prevMs = Math.max(this.#prevMs, tickMs);
  }

  /** Called when the broker was unavailable until the next tick was due. With backfill the tick is not lost: it is enqueued later. */
  giveUp(tickMs: number): void {
    if (this.#backfill === undefined) this.settle(tickMs);
  }

  /** Returns the task of a tick: the same, including its id, in every scheduler. */
  taskAt(tickMs: number): NewTask {
    const options = { taskId: `${this.id}:${tickMs}`, ...this.options };
    return newTaskOf(this.task, options, { wallNow: () => tickMs }); // a delay counts from the tick
  }

  toScheduleEntry(): ScheduleEntry {
    return {
      id: this.id,
      spec: this.spec.text,
      taskType: this.task.type,
      payload: this.task.payload,
      options: formatTaskOptions(this.options),
      nextEnqueueAtMs: Number.isFinite(this.nextMs) ? this.nextMs : 0,
      prevEnqueueAtMs: this.#prevMs,
    };
  }

  /** The next tick is the first one after that time. What was missed until then is still to be enqueued. */
  #goBackTo(nowMs: number): void {
    this.#begunMs = Math.min(this.#begunMs, nowMs);
    this.#settledMs = Math.min(this.#settledMs, nowMs);
    this.#shownMs = nowMs;
    this.nextMs = this.spec.next(nowMs) ?? Infinity;
  }
}

/** Whether the clock was wrong when it reached that time, and is right now: an entry that waited for it would not run for long. */
function isFarAhead(timeMs: number, nowMs: number): boolean {
  return timeMs > nowMs + MOST_SET_BACK_MS;
}

/** The shortest span that is searched for the newest ticks, in milliseconds. */
const SHORTEST_SPAN_MS = MINUTE_MS;

/**
 * Returns the newest ticks of a span, at most `count`, oldest first; `afterMs` is excluded. It doubles the span it searches, so the
 * cost is that of the ticks that are found, not of the years that have passed.
 */
export function newestTicks(
  spec: CronSpec,
  afterMs: number,
  untilMs: number,
  count: number,
): readonly number[] {
  const first = spec.next(afterMs) ?? Infinity;
  if (first > untilMs) return [];
  const second = spec.next(first) ?? Infinity;
  if (second > untilMs) return [first];
  let spanMs = Math.max((second - first) * count, SHORTEST_SPAN_MS);
  for (;;) {
    const fromMs = Math.max(afterMs, untilMs - spanMs);
    const ticks = ticksIn(spec, fromMs, untilMs, count);
    if (ticks.length === count || fromMs === afterMs) return ticks;
    spanMs *= 2;
  }
}

function ticksIn(spec: CronSpec, afterMs: number, untilMs: number, count: number): number[] {
  const ticks: number[] = [];
  for (let at = spec.next(afterMs); at !== undefined && at <= untilMs; at = spec.next(at)) {
    ticks.push(at);
    if (ticks.length > count) ticks.shift();
  }
  return ticks;
}

/** Hexadecimal digits of an entry's id: 128 bits. */
const ID_LENGTH = 32;

/**
 * Returns what identifies an entry: its spec and time zone, the task's type and payload, and all options, those of the task included.
 * The same in every process, and for any order of options and headers.
 */
export function identityOf(cronSpec: string, location: string, task: Task, options: TaskOptions): string {
  const { headers = {}, ...others } = options;
  return JSON.stringify([
    cronSpec.trim(),
    location,
    task.type,
    task.hasPayload ? Buffer.from(task.payload).toString('base64') : null,
    Object.entries(others).sort(byName).map(plain),
    Object.entries(headers).sort(byName),
  ]);
}

/** Returns the default id of an entry: the same in every scheduler, so that its history survives a restart. */
export function entryIdOf(identity: string): string {
  return createHash('sha256').update(identity).digest('hex').slice(0, ID_LENGTH);
}

function plain([name, value]: [string, unknown]): readonly [string, unknown] {
  return [name, value instanceof Date ? value.getTime() : value];
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** asynq's reader of options cuts an argument at the first `)`, so a name has it escaped, in a way that Go can read. */
const quoted = (text: string): string => quoteGoString(text).replaceAll(')', '\\x29');

const ASYNQ_FORMATS: Readonly<Record<OptionKind, (value: never) => string | readonly string[]>> = {
  count: String,
  duration: formatGoDuration,
  headers: (headers: Readonly<Record<string, string>>) =>
    Object.entries(headers).map((pair) => JSON.stringify(pair).replaceAll(')', '\\u0029')),
  text: quoted,
  time: (at: Date | number) => formatUnixDate(Number(at)),
};

/** Formats options as asynq does: `MaxRetry(5)`, `Queue("low")`, `Timeout(30m0s)`. Times have whole seconds. */
export function formatTaskOptions(options: TaskOptions): string[] {
  return OPTION_ROWS.flatMap(([name, [, , { kind, asynq }]]) => {
    const value = options[name];
    if (value === undefined) return [];
    return [ASYNQ_FORMATS[kind](value as never)].flat().map((argument) => `${asynq}(${argument})`);
  });
}
