import { setMaxListeners } from 'node:events';
import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError, type EscapementErrorCode } from '../../core/errors.ts';
import { isThenable } from '../../core/validate.ts';
import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import type { CancelOutcome, LeasedTask } from '../broker/broker.ts';
import { encodeJson, encodePayload, parseJson, printBytes, printFilled } from '../payload.ts';
import type { TaskMessage } from '../task-options.ts';
import type { Handler, ReceivedTask, TaskContext } from '../handler.ts';
import type { ResolvedServerOptions } from './server-options.ts';

/** A time, on both clocks. */
export interface Timestamp {
  readonly nowMs: number;
  readonly wallNowMs: number;
}

export interface RunSettings {
  readonly options: ResolvedServerOptions;
  readonly timer: SystemTimer;
  readonly handler: Handler;
  /** Ends a run: see settling.ts. */
  readonly settle: (run: TaskRun, hasFailed: boolean, error: unknown) => Promise<void>;
}

/**
 * One lease of a task, from when it is taken until its slot is free:
 *
 *      taken ──► started ──► settled, within the grace if it was interrupted ──► over: written, its slot is free
 *        │          │                                                             ▲
 *        │          └──► interrupted ──► given up: the grace is over ─────────────┤
 *        └──► interrupted before it was started ──────────────────────────────────┘
 *
 * Each run is settled exactly once: by its handler if that settles in time, else with the reason of the interruption. (asynq does
 * not wait for an interrupted handler, ignores its outcome, and starts the next one beside it.)
 *
 * A run creates only what it needs: its signal, timeouts and context values are made at their first use, and a handler that
 * returns no promise costs none.
 */
export class TaskRun {
  readonly leased: LeasedTask;
  readonly task: ReceivedTask;
  readonly context: TaskContext;
  readonly leasedAtMs: number;
  readonly startedAtWallMs: number;
  /** When it must end, in wall-clock milliseconds; 0 for never. */
  readonly deadlineMs: number;
  /** Index in the table of runs. */
  slot = -1;
  startedAtMs: number;
  /** Until when no other worker can have the task, unless the broker replies otherwise; on the monotonic clock. */
  leaseUntilMs: number;
  hasStarted = false;
  /** Whether the outcome is decided: if the handler settles now, it is too late. */
  isOver = false;
  isLeaseLost = false;
  /** Why it was first interrupted, if it was. */
  reason: EscapementError | undefined = undefined;
  /** The outcome that was last requested, if it was cancelled. */
  cancelOutcome: CancelOutcome | undefined = undefined;
  readonly #settings: RunSettings;
  /** The timer of the timeout; after an interruption, of the grace. */
  #timerId: TimerId | undefined = undefined;
  #controller: AbortController | undefined = undefined;

  /** @param leasedAt - a time at or before that of the lease. */
  constructor(leased: LeasedTask, leasedAt: Timestamp, settings: RunSettings) {
    this.leased = leased;
    this.task = new MessageTask(leased.message);
    this.context = new RunContext(this, settings);
    this.leasedAtMs = leasedAt.nowMs;
    this.startedAtMs = leasedAt.nowMs;
    this.startedAtWallMs = leasedAt.wallNowMs;
    this.leaseUntilMs = leasedAt.nowMs + settings.options.leaseMs;
    this.deadlineMs = deadlineOf(leased, leasedAt.wallNowMs);
    this.#settings = settings;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      setMaxListeners(0, this.#controller.signal); // it ends with the run: many listeners are not a leak
      if (this.reason !== undefined) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** Calls the handler, unless the run was interrupted before or its deadline has passed. Never throws. */
  start(nowMs: number): void {
    const { timer, handler } = this.#settings;
    const { deadlineMs } = this.leased.message;
    this.startedAtMs = nowMs;
    this.hasStarted = true;
    if (deadlineMs > 0 && deadlineMs <= timer.clock.wallNow()) this.#abort(timedOut(this.leased.message));
    if (this.reason !== undefined) {
      this.#settle(true, this.reason);
      return;
    }
    try {
      const result = handler(this.task, this.context);
      if (isThenable(result)) {
        void this.#waitFor(result);
        return;
      }
    } catch (error) {
      this.#settle(true, error);
      return;
    }
    this.#settle(false, undefined);
  }

  /**
   * Fires the signal; the handler then has the grace to settle. A run that was interrupted before keeps its first reason and
   * its grace.
   */
  interrupt(reason: EscapementError): void {
    if (this.isOver) return;
    if (reason.code === 'ERR_LEASE_LOST') this.isLeaseLost = true;
    if (this.reason !== undefined) return;
    this.#disarm();
    this.#abort(reason);
    const { timer, options } = this.#settings;
    if (this.hasStarted) this.#timerId = timer.schedule(options.graceMs, outOfTime, this);
  }

  /** Interrupts the run; of several requests the last one decides the outcome. @returns whether it is in time. */
  cancel(outcome: CancelOutcome): boolean {
    if (this.isOver || this.isLeaseLost) return false;
    this.cancelOutcome = outcome;
    this.interrupt(interruption('ERR_TASK_CANCELLED', 'the task was cancelled'));
    return true;
  }

  /** Returns a run that was taken and not started to its queue. Never rejects. */
  putBack(): Promise<void> {
    this.#abort(serverClosed());
    return this.#settings.settle(this, true, this.reason);
  }

  end(): void {
    this.isOver = true;
    this.#disarm();
  }

  /** @internal Called by the timer when the timeout, the deadline or the grace has passed. */
  outOfTime(): void {
    if (this.reason === undefined) this.interrupt(timedOut(this.leased.message));
    else this.#settle(true, this.reason);
  }

  async #waitFor(result: PromiseLike<unknown>): Promise<void> {
    this.#armTimeout();
    try {
      await result;
    } catch (error) {
      this.#settle(true, error);
      return;
    }
    this.#settle(false, undefined);
  }

  #settle(hasFailed: boolean, error: unknown): void {
    void this.#settings.settle(this, hasFailed, error);
  }

  /** Fires the signal, if it was created. Only the first reason counts. */
  #abort(reason: EscapementError): void {
    this.reason ??= reason;
    this.#controller?.abort(this.reason);
  }

  #armTimeout(): void {
    if (this.deadlineMs === 0 || this.reason !== undefined) return;
    const atMs = this.leasedAtMs + this.deadlineMs - this.startedAtWallMs;
    this.#timerId = this.#settings.timer.scheduleAt(atMs, outOfTime, this);
  }

  #disarm(): void {
    if (this.#timerId !== undefined) this.#settings.timer.cancel(this.#timerId); // one that has fired is ignored
    this.#timerId = undefined;
  }
}

const outOfTime = (run: TaskRun): void => {
  run.outOfTime();
};

function deadlineOf({ message: { timeoutMs, deadlineMs } }: LeasedTask, wallNowMs: number): number {
  if (timeoutMs === 0) return deadlineMs;
  const timeoutAtMs = wallNowMs + timeoutMs;
  return deadlineMs === 0 ? timeoutAtMs : Math.min(timeoutAtMs, deadlineMs);
}

/** A `ReceivedTask` that reads from a task message. */
export class MessageTask<P = undefined> implements ReceivedTask<P> {
  /** The public name, which a console prints. */
  static readonly name = 'ReceivedTask';
  readonly #message: TaskMessage;
  #payload: Uint8Array | undefined;
  readonly data: P;

  constructor(message: TaskMessage, data: P = undefined as P) {
    this.#message = message;
    this.data = data;
  }

  get type(): string {
    return this.#message.type;
  }

  get payload(): Uint8Array {
    this.#payload ??= Buffer.from(this.#message.payload);
    return this.#payload;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#message.headers;
  }

  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller states the type it expects
  json<T = unknown>(): T {
    return parseJson(`payload of '${this.type}'`, this.#message.payload, 'ReceivedTask.json') as T;
  }

  withData<D>(data: D): ReceivedTask<D> {
    return new MessageTask(this.#message, data);
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      type: this.type,
      payload: printBytes(this.#message.payload),
      headers: printFilled(this.headers),
    }));
  }
}

class RunContext implements TaskContext {
  /** The public name, which a console prints. */
  static readonly name = 'TaskContext';
  readonly #run: TaskRun;
  readonly #settings: RunSettings;
  #values: Record<string, unknown> | undefined;

  constructor(run: TaskRun, settings: RunSettings) {
    this.#run = run;
    this.#settings = settings;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get taskId(): string {
    return this.#run.leased.message.id;
  }

  get queue(): string {
    return this.#run.leased.message.queue;
  }

  get key(): string {
    return this.#run.leased.message.key;
  }

  get retryCount(): number {
    return this.#run.leased.message.retried;
  }

  get maxRetry(): number {
    return this.#run.leased.message.maxRetry;
  }

  get deadlineMs(): number {
    return this.#run.deadlineMs;
  }

  get leaseEpoch(): number {
    return this.#run.leased.epoch;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#run.leased.message.headers;
  }

  get values(): Record<string, unknown> {
    this.#values ??= Object.create(this.#settings.options.baseContext) as Record<string, unknown>;
    return this.#values;
  }

  // Both are made when they are read, so that a handler may destructure its context.

  get writeResult(): TaskContext['writeResult'] {
    const { broker } = this.#settings.options;
    return (result) =>
      unwatched(async () => broker.writeResult(this.#run.leased, encodePayload(result, 'result')));
  }

  get progress(): TaskContext['progress'] {
    const { broker } = this.#settings.options;
    return (value) =>
      unwatched(async () => broker.writeProgress(this.#run.leased, encodeJson(value, 'value')));
  }

  /** Printed by a console. Without the signal: reading it creates it. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ taskId: this.taskId, queue: this.queue, key: printFilled(this.key) },
      ...{ retryCount: this.retryCount, maxRetry: this.maxRetry },
      ...{ deadlineMs: this.deadlineMs, leaseEpoch: this.leaseEpoch, headers: printFilled(this.headers) },
    }));
  }
}

/** A write of a run that was given up rejects, perhaps after its handler has stopped listening: that must not end the process. */
function unwatched(write: () => Promise<void>): Promise<void> {
  const written = write();
  written.catch(() => undefined);
  return written;
}

/**
 * The runs of a server: as many slots as its concurrency. A run has the index of its slot, so adding and removing are O(1) and
 * allocate nothing.
 */
export class RunTable {
  readonly #slots: (TaskRun | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #capacity: number;
  /** Woken when a slot becomes free. */
  readonly #latch: { wake(): void };
  #size = 0;
  #whenEmpty: (() => void) | undefined;

  constructor(capacity: number, latch: { wake(): void }) {
    this.#capacity = capacity;
    this.#latch = latch;
  }

  get size(): number {
    return this.#size;
  }

  get capacityLeft(): number {
    return this.#capacity - this.#size;
  }

  add(run: TaskRun): void {
    run.slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[run.slot] = run;
    this.#size++;
  }

  remove(run: TaskRun): void {
    this.#slots[run.slot] = undefined;
    this.#free.push(run.slot);
    this.#size--;
    this.#latch.wake();
    if (this.#size === 0) this.#whenEmpty?.();
  }

  /** Resolves when it is empty. For one caller. */
  async empty(): Promise<void> {
    if (this.#size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenEmpty = resolve;
    });
  }

  /** Returns a copy: runs may be added and removed while it is read. O(concurrency). */
  list(): TaskRun[] {
    return this.#slots.filter((run) => run !== undefined);
  }
}

/* Reasons of an interruption: of the signal, and the last error of the task if the handler has none of its own. */

export function serverClosed(): EscapementError {
  return interruption('ERR_SERVER_CLOSED', 'the server is shutting down');
}

export function leaseLostReason(): EscapementError {
  return interruption('ERR_LEASE_LOST', 'the lease of the task is lost');
}

function timedOut({ timeoutMs, deadlineMs }: TaskMessage): EscapementError {
  const limits = [
    ...(timeoutMs > 0 ? [`its timeout of ${timeoutMs} ms`] : []),
    ...(deadlineMs > 0 ? [`its deadline of ${new Date(deadlineMs).toISOString()}`] : []),
  ];
  return interruption('ERR_TASK_TIMEOUT', `the task was not done within ${limits.join(' and ')}`);
}

function interruption(code: EscapementErrorCode, message: string): EscapementError {
  return new EscapementError(code, message, { op: 'Server.process' });
}
