import { readClock, type Clock } from '../core/clock.ts';
import { Wakeup } from '../core/wakeup.ts';
import type { TaskRunner } from './task-runner.ts';
import { NO_SLOT, type EntryCallback } from './timer-table.ts';
import type { TaskOwner } from './timer-task.ts';
import type { TimerTaskList } from './timer-task-list.ts';
import type { TimerWheels } from './timer-wheels.ts';
import type { ResolvedSystemTimerOptions, TimerMetrics } from './timer.ts';

type DriverOptions = Pick<ResolvedSystemTimerOptions, 'clock' | 'autoStart' | 'maxTasksPerTurn'>;

/** A pending call of `advanceClock`. */
interface ClockWait {
  readonly deadlineMs: number;
  readonly resolve: (fellDue: boolean) => void;
}

/**
 * Keeps one wake-up armed for the earliest list that holds tasks, or none, and pumps when it fires. Every change of what is
 * pending goes through the driver, and `#rearm` alone moves the wake-up:
 *
 *     enter, move, withdraw ─► wheels ─► is the armed deadline affected? ─┐
 *     wake-up, pump ─────────► wheels ─► due queue ─► runner ─────────────┼─► #rearm
 *     wait, close ────────────────────────────────────────────────────────┘
 *
 * An entry that is added or removed costs one comparison with the armed deadline; the delay queue is read only if that
 * deadline is affected. The clock is read once per operation; with an absolute deadline only if the wake-up is armed or moved.
 */
export class TimerDriver implements TaskOwner {
  readonly #wheels: TimerWheels;
  readonly #clock: Clock;
  readonly #runner: TaskRunner;
  readonly #autoStart: boolean;
  readonly #maxTasksPerTurn: number;
  readonly #metrics: TimerMetrics | undefined;
  readonly wakeup: Wakeup;
  /** Few at any time: usually one loop. */
  #waits: ClockWait[] = [];

  constructor(
    wheels: TimerWheels,
    runner: TaskRunner,
    { clock, autoStart, maxTasksPerTurn }: DriverOptions,
    metrics?: TimerMetrics,
  ) {
    this.#wheels = wheels;
    this.#clock = clock;
    this.#runner = runner;
    this.#autoStart = autoStart;
    this.#maxTasksPerTurn = autoStart ? maxTasksPerTurn : Infinity;
    this.#metrics = metrics;
    this.wakeup = new Wakeup(
      clock,
      (nowMs) => {
        this.#wake(nowMs);
      },
      (error) => {
        runner.report(error, undefined);
      },
    );
  }

  /** Whether a wake-up must be armed now for the earliest list, if there is one, and for nothing else. */
  get isArming(): boolean {
    const { isRunning, isHandedOver, isStopped } = this.#runner;
    if (isRunning || isHandedOver || isStopped || this.wakeup.isRetrying) return false;
    return this.#autoStart && this.#waits.length === 0;
  }

  /**
   * Adds an entry for `callback(argument)`, `delayMs` from now. If the clock throws or is wrong, nothing is added.
   *
   * @returns its slot.
   */
  enter(callback: EntryCallback, argument: unknown, delayMs: number): number {
    const nowMs = readClock(this.#clock);
    const hasExpired = this.#catchUp(nowMs);
    const slot = this.#wheels.table.allocate(callback, argument);
    const list = this.#wheels.place(slot, delayMs, nowMs);
    if (hasExpired || this.#isLate(list)) this.#rearmFor(slot, nowMs);
    return slot;
  }

  /** Moves a pending entry to `delayMs` from now. */
  move(slot: number, delayMs: number): void {
    const nowMs = readClock(this.#clock);
    const hasExpired = this.#catchUp(nowMs);
    const emptied = this.#wheels.table.unlink(slot);
    const wasAwaited = this.#isAwaited(emptied);
    const list = this.#wheels.place(slot, delayMs, nowMs);
    if (hasExpired || wasAwaited || this.#isLate(list)) this.#rearm(nowMs);
  }

  /**
   * Adds an entry for `callback(argument)` at `deadlineMs`. If the clock throws or is wrong, nothing is added.
   *
   * @returns its slot.
   */
  enterAt(callback: EntryCallback, argument: unknown, deadlineMs: number): number {
    let nowMs: number | undefined;
    if (this.wakeup.deadlineMs === Infinity && this.#isDriven && !this.#runner.isRunning) {
      // A wake-up must be armed anyway. The wheels catch up, so that the level of the entry does not depend on how long they were idle.
      nowMs = readClock(this.#clock);
      this.#catchUp(nowMs);
    }
    const slot = this.#wheels.table.allocate(callback, argument);
    if (this.#isLate(this.#wheels.placeAt(slot, deadlineMs))) this.#rearmFor(slot, nowMs);
    return slot;
  }

  /** Moves a pending entry to `deadlineMs`. */
  moveAt(slot: number, deadlineMs: number): void {
    const wasAwaited = this.#isAwaited(this.#wheels.table.unlink(slot));
    const list = this.#wheels.placeAt(slot, deadlineMs);
    if (wasAwaited || this.#isLate(list)) this.#rearm();
  }

  withdraw(slot: number): void {
    if (this.#isAwaited(this.#wheels.table.discard(slot))) this.#rearm();
  }

  /** Resolves with true when the next bucket falls due, and with false after `timeoutMs`. */
  wait(timeoutMs: number): Promise<boolean> {
    const nowMs = readClock(this.#clock);
    return new Promise((resolve) => {
      this.#waits.push({ deadlineMs: nowMs + timeoutMs, resolve });
      this.#rearm(nowMs);
    });
  }

  /** Moves what is due to the due queue, and runs at most `limit` of it; nothing inside a task and after `close`. */
  pump(limit: number, nowMs = readClock(this.#clock)): { fellDue: boolean; ran: number } {
    const { due } = this.#wheels;
    const { isRunning, isStopped, isHandedOver } = this.#runner;
    if (isRunning || isStopped) return { fellDue: false, ran: 0 };
    const wasDue = !due.isEmpty && !isHandedOver;
    const fellDue = this.#wheels.startTurn(nowMs, limit !== Infinity) || wasDue;
    if (fellDue) this.#settleWaits(true);
    const ran = due.isEmpty ? 0 : this.#runner.dispatch(limit, this.#endTurn);
    this.#rearm();
    return { fellDue, ran };
  }

  /** Disarms the wake-up for good, and ends every wait. */
  close(): void {
    this.#runner.isStopped = true;
    this.#settleWaits(false);
    this.#rearm();
  }

  #wake(nowMs: number): void {
    this.pump(this.#maxTasksPerTurn, nowMs);
    this.#settleWaits(false, nowMs);
    this.#rearm();
    this.#metrics?.woke();
  }

  readonly #endTurn = (ran: number): void => {
    this.#rearm();
    this.#metrics?.ran(ran);
  };

  /** Settles the waits whose deadline is at or before `untilMs`. */
  #settleWaits(fellDue: boolean, untilMs = Infinity): void {
    const waits = this.#waits;
    this.#waits = waits.filter(({ deadlineMs }) => deadlineMs > untilMs);
    for (const { deadlineMs, resolve } of waits) if (deadlineMs <= untilMs) resolve(fellDue);
  }

  /**
   * Brings the wheels to now, so that the level of an insertion depends on its delay alone, however long the timer was idle, and
   * so that overdue entries are in the due queue before a new one.
   *
   * @returns whether a bucket expired, so that the wake-up may have to move.
   */
  #catchUp(nowMs: number): boolean {
    return nowMs >= this.#wheels.first.nextTickMs && this.#wheels.catchUp(nowMs);
  }

  /** Whether the wake-up is armed for this list, which is empty now, or for one that is no earlier. */
  #isAwaited(sentinel: number): boolean {
    return sentinel !== NO_SLOT && this.#wheels.table.expirationOf(sentinel) <= this.wakeup.deadlineMs;
  }

  /** Whether the wake-up is armed for later than a list needs it. */
  #isLate(list: TimerTaskList): boolean {
    return list.expirationMs < this.wakeup.deadlineMs && this.#isDriven;
  }

  /** Whether there is a use for a wake-up: the timer drives itself, or a call of `advanceClock` is pending. */
  get #isDriven(): boolean {
    return this.#autoStart || this.#waits.length > 0;
  }

  /** A wake-up that cannot be armed takes the entry with it that needed it: the caller gets the error. */
  #rearmFor(slot: number, nowMs?: number): void {
    if (this.#runner.isRunning) return;
    try {
      this.#rearm(nowMs ?? readClock(this.#clock));
    } catch (error) {
      this.#wheels.table.discard(slot);
      throw error;
    }
  }

  /** Arms, moves or disarms the wake-up, as what is pending requires. While tasks run that is left to the end of their turn. */
  #rearm(nowMs?: number): void {
    const { isRunning, isStopped } = this.#runner;
    if (isRunning) return;
    this.wakeup.moveTo(this.#isDriven && !isStopped ? this.#wakeAtMs() : Infinity, nowMs);
  }

  #wakeAtMs(): number {
    const { delayQueue } = this.#wheels;
    // An executor has taken on what is due: only buckets need a wake-up until it has run.
    const earliest = this.#runner.isHandedOver ? delayQueue.peek() : this.#wheels.earliest();
    let wakeAtMs = earliest?.expirationMs ?? Infinity;
    for (const { deadlineMs } of this.#waits) wakeAtMs = Math.min(wakeAtMs, deadlineMs);
    return wakeAtMs;
  }
}
