import { readClock, type Clock } from '../core/clock.ts';
import { Wakeup } from '../core/wakeup.ts';
import { ClockWaits } from './clock-waits.ts';
import type { EntryCallback } from './reference-page.ts';
import { NO_SLOT, type TimerTaskList } from './timer-table.ts';
import type { TaskHome } from './timer-task.ts';
import type { TimerWheels } from './timer-wheels.ts';

/**
 * Knows one thing: when the timer must wake. Every change of what waits goes through it, so that at any moment
 * one wake-up is armed for the earliest list that holds tasks, or none is.
 *
 * An entry that comes or goes costs one comparison with the armed deadline; the delay queue is only asked when
 * that deadline is affected. The clock is read once per operation.
 */
export class TimerDriver implements TaskHome {
  readonly waits = new ClockWaits();
  readonly #wheels: TimerWheels;
  readonly #clock: Clock;
  readonly #wakeup: Wakeup;
  readonly #autoStart: boolean;
  /** Whether there is anybody to wake: the timer itself, or a caller of `advanceClock`. */
  #isDriven: boolean;
  #isPaused = false;
  #isHandedOver = false;
  #isClosed = false;

  constructor(
    wheels: TimerWheels,
    clock: Clock,
    autoStart: boolean,
    onWake: (nowMs: number) => void,
    onClockError: (error: unknown) => void,
  ) {
    this.#wheels = wheels;
    this.#clock = clock;
    this.#autoStart = autoStart;
    this.#isDriven = autoStart;
    this.#wakeup = new Wakeup(clock, onWake, onClockError);
  }

  /** When the wake-up is due; `Infinity` if none is armed. */
  get armedForMs(): number {
    return this.#wakeup.deadlineMs;
  }

  /** Whether, at this moment, a wake-up is armed for the earliest list if there is one, and for nothing else. */
  get isArming(): boolean {
    const isHeld = this.#isPaused || this.#isHandedOver || this.#isClosed || this.#wakeup.isRetrying;
    return this.#autoStart && this.waits.isEmpty && !isHeld;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether due tasks may run: not while others do, and not after `close`. */
  get mayRun(): boolean {
    return !this.#isPaused && !this.#isClosed;
  }

  /** Whether an executor has a turn that it has not run yet. */
  get isHandedOver(): boolean {
    return this.#isHandedOver;
  }

  get hasRef(): boolean {
    return this.#wakeup.hasRef;
  }

  setRef(hasRef: boolean): void {
    this.#wakeup.setRef(hasRef);
  }

  /**
   * Makes an entry for `callback(argument)`, `delayMs` from now. If the clock throws, or is wrong, there is none.
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

  /** Places an entry that waits already anew, `delayMs` from now. */
  move(slot: number, delayMs: number): void {
    const nowMs = readClock(this.#clock);
    const hasExpired = this.#catchUp(nowMs);
    const emptied = this.#wheels.table.unlink(slot);
    const wasAwaited = emptied !== NO_SLOT && this.#isAwaited(emptied);
    const list = this.#wheels.place(slot, delayMs, nowMs);
    if (hasExpired || wasAwaited || this.#isLate(list)) this.rearm(nowMs);
  }

  withdraw(slot: number): void {
    const { table } = this.#wheels;
    const emptied = table.discard(slot);
    if (emptied !== NO_SLOT && this.#isAwaited(emptied)) this.rearm();
  }

  /** Waits for the next bucket to fall due, at most `timeoutMs`. */
  wait(timeoutMs: number): Promise<boolean> {
    const nowMs = readClock(this.#clock);
    const fellDue = this.waits.add(nowMs + timeoutMs);
    this.rearm(nowMs);
    return fellDue;
  }

  /** Tasks run from here on: whatever they add, one look at the end is enough. */
  pause(): void {
    this.#isPaused = true;
    this.#isHandedOver = false;
  }

  resume(): void {
    this.#isPaused = false;
    this.rearm();
  }

  /** An executor has taken on what is due: only buckets need a wake-up until `pause`. */
  handOver(): void {
    this.#isHandedOver = true;
  }

  /** Moves the one wake-up to where it belongs. */
  rearm(nowMs?: number): void {
    if (this.#isPaused || this.#isClosed) return;
    this.#isDriven = this.#autoStart || !this.waits.isEmpty;
    this.#wakeup.moveTo(this.#isDriven ? this.#wakeAtMs() : Infinity, nowMs);
  }

  /** Nobody is woken any more. */
  close(): void {
    this.#isClosed = true;
    this.#wakeup.moveTo(Infinity);
    this.waits.settleAll(false);
  }

  /**
   * Brings the wheels to now, so that the level of an insertion depends on its delay alone, however long nothing
   * happened; and so that what is overdue stands in the due queue before a newcomer does.
   *
   * @returns whether a bucket expired, so that the wake-up may belong elsewhere.
   */
  #catchUp(nowMs: number): boolean {
    return nowMs >= this.#wheels.first.nextTickMs && this.#wheels.catchUp(nowMs);
  }

  /** A wake-up that cannot be armed takes the entry with it that asked for it: its caller learns by the error. */
  #rearmFor(slot: number, nowMs: number): void {
    try {
      this.rearm(nowMs);
    } catch (error) {
      this.#wheels.table.discard(slot);
      throw error;
    }
  }

  /** Whether the wake-up is armed for a list, or for one that is no earlier. */
  #isAwaited(sentinel: number): boolean {
    return this.#wheels.table.listAt(sentinel).expirationMs <= this.#wakeup.deadlineMs;
  }

  /** Whether the wake-up is armed for later than a list needs it. */
  #isLate(list: TimerTaskList): boolean {
    return list.expirationMs < this.#wakeup.deadlineMs && this.#isDriven;
  }

  #wakeAtMs(): number {
    const earliest = this.#isHandedOver ? this.#wheels.delayQueue.peek() : this.#wheels.earliest();
    return Math.min(earliest?.expirationMs ?? Infinity, this.waits.earliestDeadlineMs);
  }
}
