import { setMaxListeners } from 'node:events';
import type { EscapementError } from '../../core/errors.ts';
import type { TimerId } from '../../timer/system-timer.ts';
import type { Broker, CancelOutcome, LeasedTask } from '../broker/broker.ts';
import { MessageTask, type ReceivedTask } from './received-task.ts';
import { RunContext } from './task-context.ts';

/** When a run was taken, by both clocks. */
export interface Moment {
  readonly nowMs: number;
  readonly wallNowMs: number;
}

/** What the runs of a server have in common. */
export interface RunSettings {
  readonly broker: Broker;
  readonly leaseMs: number;
  readonly baseContext: Readonly<Record<string, unknown>> | null;
}

/**
 * One lease of a task, from when it is taken until its place is free:
 *
 *      taken ──► started ──► settled, within the grace if it was interrupted ──► over: written, its place is free
 *        │          │                                                             ▲
 *        │          └──► interrupted ──► given up: the grace is over ─────────────┤
 *        └──► interrupted before it was started ──────────────────────────────────┘
 *
 * Only what a run needs is made: its signal, its timeouts and its context's values come when they are asked for.
 */
export class TaskRun {
  readonly leased: LeasedTask;
  readonly task: ReceivedTask;
  readonly context: RunContext;
  readonly leasedAtMs: number;
  readonly startedAtWallMs: number;
  /** When it must be over, in wall-clock milliseconds; 0 for never. */
  readonly deadlineMs: number;
  /** Its place in the table of runs. */
  place = -1;
  startedAtMs: number;
  /** Until when nobody else has it, if the broker does not say otherwise; on the monotonic clock. */
  leaseUntilMs: number;
  hasStarted = false;
  /** What became of it is decided: whatever its handler says comes too late. */
  isOver = false;
  isLeaseLost = false;
  /** Why it was interrupted first, if it was. */
  reason: EscapementError | undefined = undefined;
  /** What was asked for last, if it was cancelled. */
  cancelOutcome: CancelOutcome | undefined = undefined;
  /** Of its timeout; later of its grace. */
  timerId: TimerId | undefined = undefined;
  #controller: AbortController | undefined = undefined;

  /** @param leasedAt - a moment at or before that of the lease. */
  constructor(leased: LeasedTask, leasedAt: Moment, { broker, leaseMs, baseContext }: RunSettings) {
    this.leased = leased;
    this.task = new MessageTask(leased.message, undefined);
    this.context = new RunContext(this, broker, baseContext);
    this.leasedAtMs = leasedAt.nowMs;
    this.startedAtMs = leasedAt.nowMs;
    this.startedAtWallMs = leasedAt.wallNowMs;
    this.leaseUntilMs = leasedAt.nowMs + leaseMs;
    this.deadlineMs = deadlineOf(leased, leasedAt.wallNowMs);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      setMaxListeners(0, this.#controller.signal); // it goes with the run: however many there are, they are no leak
      if (this.reason !== undefined) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  /** Fires the signal, if somebody has it. Only the first reason counts. */
  abort(reason: EscapementError): void {
    this.reason ??= reason;
    this.#controller?.abort(this.reason);
  }
}

/** The earlier of timeout and deadline. */
function deadlineOf({ message: { timeoutMs, deadlineMs } }: LeasedTask, wallNowMs: number): number {
  if (timeoutMs === 0) return deadlineMs;
  const timeoutAtMs = wallNowMs + timeoutMs;
  return deadlineMs === 0 ? timeoutAtMs : Math.min(timeoutAtMs, deadlineMs);
}
