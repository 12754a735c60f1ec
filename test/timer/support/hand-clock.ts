import type { Clock, ClockTimeout } from 'escapement';

interface ArmedWakeup {
  readonly atMs: number;
  readonly callback: () => void;
}

/**
 * A clock that moves and fires only by hand, so that the host can be late, early, or wrong: time passes without
 * any wake-up being delivered, and a wake-up is delivered whenever the test says so.
 */
export class HandClock implements Clock {
  nowMs: number;
  /** How often `now` was called. */
  readings = 0;
  /** Every delay that was ever asked for, in order. */
  readonly delaysMs: number[] = [];
  /** The most wake-ups that were ever armed together. */
  mostArmed = 0;
  /** Calls of `ref` and `unref` on wake-ups, in order. */
  readonly refs: ('ref' | 'unref')[] = [];
  readonly #armed = new Set<ArmedWakeup>();
  readonly #cancelled: ArmedWakeup[] = [];

  constructor(nowMs = 0) {
    this.nowMs = nowMs;
  }

  now(): number {
    this.readings++;
    return this.nowMs;
  }

  wallNow(): number {
    return this.nowMs;
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    const wakeup: ArmedWakeup = { atMs: this.nowMs + delayMs, callback };
    this.delaysMs.push(delayMs);
    this.#armed.add(wakeup);
    this.mostArmed = Math.max(this.mostArmed, this.#armed.size);
    return {
      cancel: () => {
        if (this.#armed.delete(wakeup)) this.#cancelled.push(wakeup);
      },
      ref: () => this.refs.push('ref'),
      unref: () => this.refs.push('unref'),
    };
  }

  /** How many wake-ups are armed now. */
  get pendingWakeups(): number {
    return this.#armed.size;
  }

  /** When the armed wake-up asked to be called; undefined if none is armed. */
  get armedForMs(): number | undefined {
    const [first] = this.#armed;
    return first?.atMs;
  }

  /** Delivers the armed wake-up now, however early or late that is. Does nothing if none is armed. */
  fire(): void {
    const [wakeup] = this.#armed;
    if (wakeup === undefined) return;
    this.#armed.delete(wakeup);
    wakeup.callback();
  }

  /** Delivers every wake-up that was ever cancelled, as a broken host would. */
  fireCancelled(): void {
    for (const wakeup of this.#cancelled.splice(0)) wakeup.callback();
  }

  /** Moves to `nowMs` and delivers what is due by then, until nothing is. */
  runTo(nowMs: number): void {
    this.nowMs = Math.max(this.nowMs, nowMs);
    while ((this.armedForMs ?? Infinity) <= this.nowMs) this.fire();
  }
}
