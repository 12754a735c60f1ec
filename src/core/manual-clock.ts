import type { Clock, ClockTimeout } from './clock.ts';
import { CONSOLE_VIEW, consoleView } from './console-view.ts';
import { EscapementError, outOfRange } from './errors.ts';
import { isVirtualTimeHeld, nextHostTurn, pendingOwnTurns } from './own-turn.ts';
import { milliseconds, readOptions, type OptionTable } from './options.ts';
import { requireFiniteNumber, requireFunction } from './validate.ts';

/** Wake-ups that may fire in one `advance` without time moving. A loop that re-arms itself with no delay has no end. */
const MAX_WAKEUPS_AT_ONE_MOMENT = 100_000;

/** Turns of the host that may pass without time moving: ten million pieces of work, at a thousand a turn. */
const MAX_TURNS_AT_ONE_MOMENT = 10_000;

/** Past this many milliseconds a number can no longer hold every whole one. */
const LAST_MS = Number.MAX_SAFE_INTEGER;

/** Where the two readings of a {@link ManualClock} start. */
export interface ManualClockOptions {
  /** `now()`, in milliseconds: from 0 to 2^53 - 1. @default 0 */
  readonly nowMs?: number | undefined;
  /** `wallNow()`, in milliseconds since the Unix epoch. @default 0 */
  readonly wallMs?: number | undefined;
}

const OPTIONS = {
  nowMs: [milliseconds(0, LAST_MS), 0],
  wallMs: [requireFiniteNumber, 0],
} satisfies OptionTable<ManualClockOptions>;

interface ManualWakeup {
  readonly atMs: number;
  readonly callback: () => void;
}

/**
 * Virtual time: it stands still until `advance` moves it, and wake-ups fire at exactly their own deadline, in
 * order. The code under test is the production code, only its clock differs; nothing sleeps.
 *
 * @example
 * ```ts
 * const clock = new ManualClock();
 * const timer = new SystemTimer({ clock });
 * timer.schedule(3_600_000, (name) => console.log(name), 'an hour later');
 * clock.advance(3_600_000); // prints, at once
 * ```
 */
export class ManualClock implements Clock {
  readonly #wallOffsetMs: number;
  /** In the order they were armed, which breaks ties. A handful at most: a timer arms one. */
  readonly #wakeups = new Set<ManualWakeup>();
  #nowMs: number;

  /** @throws TypeError or RangeError - an option is wrong. */
  constructor(options: ManualClockOptions = {}) {
    const { nowMs, wallMs } = readOptions('ManualClock', options, OPTIONS);
    this.#nowMs = nowMs;
    this.#wallOffsetMs = wallMs - nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  wallNow(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** How many wake-ups are armed: 0 or 1 per timer, however many tasks wait in it. */
  get pendingWakeups(): number {
    return this.#wakeups.size;
  }

  setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    requireFunction('callback', callback);
    requireFiniteNumber('delayMs', delayMs);
    const wakeup: ManualWakeup = { atMs: this.#nowMs + Math.max(delayMs, 0), callback };
    this.#wakeups.add(wakeup);
    return {
      cancel: () => {
        this.#wakeups.delete(wakeup);
      },
      ref: () => undefined,
      unref: () => undefined,
    };
  }

  /**
   * Moves time by `ms` milliseconds. The wake-ups due on the way fire, each while `now()` is its deadline,
   * also those that are armed on the way; an error that one throws ends the call where it stands.
   *
   * @throws RangeError `ERR_OUT_OF_RANGE` - `ms` is negative or not finite, or leads past 2^53 - 1.
   * @throws EscapementError `ERR_CLOCK_STALLED` - 100 000 wake-ups fired without time moving.
   */
  advance(ms: number): void {
    const targetMs = this.#targetOf(ms);
    for (const wakeup of this.#dueUntil(targetMs)) wakeup.callback();
    this.#moveTo(targetMs);
  }

  /**
   * As {@link ManualClock.advance}, and all work settles before the first wake-up and after each: promise jobs, however
   * many follow each other, and what this package has put off to a later turn of the event loop. I/O is not waited for.
   *
   * @throws as `advance`. `ERR_CLOCK_STALLED` also after 10 000 turns of the event loop without time moving.
   */
  async advanceAsync(ms: number): Promise<void> {
    const targetMs = this.#targetOf(ms);
    await this.#settle();
    for (const wakeup of this.#dueUntil(targetMs)) {
      wakeup.callback();
      await this.#settle();
    }
    this.#moveTo(targetMs);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      nowMs: this.now(),
      wallMs: this.wallNow(),
      pendingWakeups: this.pendingWakeups,
    }));
  }

  async #settle(): Promise<void> {
    let turns = 0;
    do {
      if (!isVirtualTimeHeld() && ++turns > MAX_TURNS_AT_ONE_MOMENT)
        throw stalled(`${turns - 1} turns of the event loop passed`, this.#nowMs);
      await nextHostTurn();
    } while (pendingOwnTurns() > 0 || isVirtualTimeHeld());
  }

  #targetOf(ms: number): number {
    requireFiniteNumber('ms', ms);
    if (ms < 0) throw outOfRange('ms', 'at least 0: time only moves forward', ms);
    const targetMs = this.#nowMs + ms;
    if (targetMs > LAST_MS) throw outOfRange('ms', 'small enough that now() stays at most 2^53 - 1', ms);
    return targetMs;
  }

  *#dueUntil(targetMs: number): Generator<ManualWakeup> {
    let firedSinceMove = 0;
    for (let next = this.#earliest(); next !== undefined && next.atMs <= targetMs; next = this.#earliest()) {
      if (next.atMs > this.#nowMs) firedSinceMove = 0;
      else if (++firedSinceMove > MAX_WAKEUPS_AT_ONE_MOMENT)
        throw stalled(`${MAX_WAKEUPS_AT_ONE_MOMENT} wake-ups fired`, this.#nowMs);
      this.#moveTo(next.atMs);
      this.#wakeups.delete(next);
      yield next;
    }
  }

  #earliest(): ManualWakeup | undefined {
    let earliest: ManualWakeup | undefined;
    for (const wakeup of this.#wakeups) {
      if (earliest === undefined || wakeup.atMs < earliest.atMs) earliest = wakeup;
    }
    return earliest;
  }

  /** A callback may have advanced the clock itself: time never goes back. */
  #moveTo(ms: number): void {
    if (ms > this.#nowMs) this.#nowMs = ms;
  }
}

function stalled(what: string, nowMs: number): EscapementError {
  return new EscapementError(
    'ERR_CLOCK_STALLED',
    `${what} at ${nowMs} ms without time moving: something starts itself again with no delay`,
    { op: 'ManualClock.advance' },
  );
}
