import type { NewTask, ScheduleEntry } from '../broker/broker.ts';
import { MOST_SET_BACK_MS } from '../broker/broker-settings.ts';
import type { CronSpec } from '../cron-spec.ts';
import { formatTaskOptions } from '../entry-options.ts';
import { newTaskOf } from '../new-task.ts';
import type { TaskOptions } from '../task-options.ts';
import type { Task } from '../task.ts';
import { newestTicks, type Backfill } from './backfill.ts';

/**
 * An entry of a scheduler, and how far it has come:
 *
 *      mark        begun           settled          now      next
 *      ──┼───×──×────┼────×───×───────×────×───×─────┼─────────×──►
 *            └──┘                          └───┘
 *        missed: only                 due: with no backfill
 *        with backfill                only the last of them
 *
 * A tick is settled when it was enqueued by whomever, refused, or given up. While a scheduler runs, no entry is passed over:
 * if several ticks have passed at once (the process was suspended, the wall clock was set), the last one runs, at least.
 */
export class ScheduledEntry {
  readonly id: string;
  readonly spec: CronSpec;
  readonly task: Task;
  /** The task's, and those of the entry over them. */
  readonly options: TaskOptions;
  readonly #backfill: Backfill | undefined;
  #begunMs = 0;
  #settledMs = 0;
  #nextMs = Infinity;
  #prevMs = 0;
  #asksForMark = false;
  #knowsPast = false;
  isRemoved = false;

  constructor(id: string, spec: CronSpec, task: Task, options: TaskOptions, backfill: Backfill | undefined) {
    this.id = id;
    this.spec = spec;
    this.task = task;
    this.options = options;
    this.#backfill = backfill;
  }

  /** The first tick that has not come yet; `Infinity` if none will. */
  get nextMs(): number {
    return this.#nextMs;
  }

  /** The last tick that was enqueued, by whomever; 0 if none was. */
  get prevMs(): number {
    return this.#prevMs;
  }

  /** Whether somebody must find out first how far others have come. */
  get asksForMark(): boolean {
    return this.#asksForMark;
  }

  get queue(): string {
    return this.taskAt(0).message.queue;
  }

  /** Its scheduler runs: ticks count from now on. */
  begin(nowMs: number): void {
    this.#begunMs = nowMs;
    this.#settledMs = nowMs;
    this.#nextMs = this.spec.next(nowMs) ?? Infinity;
    this.#asksForMark = this.#backfill !== undefined;
  }

  /** @returns whether a tick has come since it was asked last. */
  passTo(nowMs: number): boolean {
    if (isFarAhead(this.#settledMs, nowMs)) this.begin(nowMs);
    if (this.#nextMs > nowMs) return false;
    this.#nextMs = this.spec.next(this.#nextMs) ?? Infinity;
    if (this.#nextMs > nowMs) return true;
    // A long pause: others may have done all of that, and one question is cheaper than a try each.
    this.#asksForMark = this.#backfill !== undefined;
    this.#nextMs = this.spec.next(nowMs) ?? Infinity;
    return true;
  }

  /** @param markMs - the latest tick that was enqueued; undefined if none ever was, or nobody can know. */
  learnMark(markMs: number | undefined, nowMs: number): void {
    this.#asksForMark = false;
    if (markMs === undefined || isFarAhead(markMs, nowMs)) {
      this.#knowsPast = true;
      return;
    }
    // At the start it may be long ago: what is after it was missed. Later on it can only spare work.
    this.#settledMs = this.#knowsPast ? Math.max(this.#settledMs, markMs) : markMs;
    this.#knowsPast = true;
    this.#prevMs = Math.max(this.#prevMs, markMs);
  }

  /** Ticks to enqueue, oldest first. */
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

  /** The broker could not be reached until the next tick was due: what can be made up for then is not lost. */
  giveUp(tickMs: number): void {
    if (this.#backfill === undefined) this.settle(tickMs);
  }

  /** What is enqueued at a tick: the same, down to its id, whoever enqueues it. */
  taskAt(tickMs: number): NewTask {
    const { taskId = `${this.id}:${tickMs}` } = this.options;
    return newTaskOf(this.task, { ...this.options, taskId }, tickMs);
  }

  toScheduleEntry(): ScheduleEntry {
    return {
      id: this.id,
      spec: this.spec.text,
      taskType: this.task.type,
      payload: this.task.payload,
      options: formatTaskOptions(this.options),
      nextEnqueueAtMs: Number.isFinite(this.#nextMs) ? this.#nextMs : 0,
      prevEnqueueAtMs: this.#prevMs,
    };
  }
}

/** A clock was wrong when it came to that tick, and is right now: waiting for that tick would be silence. */
function isFarAhead(tickMs: number, nowMs: number): boolean {
  return tickMs > nowMs + MOST_SET_BACK_MS;
}
