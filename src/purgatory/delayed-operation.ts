import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { invalidDelay } from '../core/validate.ts';
import { DROPPED, isTimerTask, TimerTask } from '../timer/timer-task.ts';

/**
 * How an operation came to its end:
 *
 * - `'tried'`: a check found that its condition held.
 * - `'forced'`: somebody called `forceComplete`.
 * - `'expired'`: its delay was over first.
 * - `'closed'`: its purgatory was closed.
 */
export type CompletionReason = 'tried' | 'forced' | 'expired' | 'closed';

/** What is going on with an operation: nothing; a check; a check that was triggered again meanwhile. */
const IDLE = 0;
const CHECKING = 1;
const TRIGGERED = 2;
/** The error of a check is reported: the check is over, and may have been triggered again. */
const REPORTING = 3;
const REPORTING_TRIGGERED = 4;
/** It is asked whether its condition holds, and must not complete; it has said yes. */
const PROBING = 5;
const HOLDS = 6;

/** The serial number of an operation that is under no key. */
export const NOT_WATCHED = 0;

/** How often a check may ask for another one of itself before we call it endless. */
const MOST_REPEATS = 10_000;

/** What watches an operation: the part of a purgatory that its operations call. */
export interface OperationHome {
  /** Takes a completed operation off every key and off the timer. */
  release(operation: DelayedOperation, reason: CompletionReason): void;
  /** Its timeout is over, and it has not completed yet. */
  aboutToExpire(operation: DelayedOperation): void;
  /** It no longer waits for its timeout. */
  timeoutGone(operation: DelayedOperation): void;
  /** Its code has thrown. */
  report(error: unknown, operation: DelayedOperation): void;
}

/**
 * Something that waits for a condition, and not longer than a delay: an answer that needs three replicas, a long
 * poll that needs a kilobyte. It completes once, whichever way. Subclass it, and give it to a purgatory with the
 * keys of what its condition depends on.
 *
 * HOW. `tryComplete` looks at the condition. The purgatory calls it when the operation comes, and again whenever
 * somebody says that one of its keys has changed. Completion by any path first takes the operation off every key
 * and off the timer, and then runs `onComplete`.
 *
 * After Kafka's class of this name. Differs in that `onComplete` is told the reason, so that nobody must prepare
 * for the worst beforehand, and in that a completed operation is not held by anything.
 *
 * @example
 * ```ts
 * class Produce extends DelayedOperation {
 *   constructor(readonly offset: number, readonly log: Log, readonly reply: (status: string) => void) {
 *     super(1_500);
 *   }
 *   override tryComplete() {
 *     return this.log.highWatermark > this.offset && this.forceComplete();
 *   }
 *   override onComplete(reason: CompletionReason) {
 *     this.reply(reason === 'tried' ? 'stored' : 'timed out');
 *   }
 *   override onExpiration() {}
 * }
 * ```
 */
export abstract class DelayedOperation extends TimerTask {
  private _purgatory: OperationHome | undefined = undefined;
  private _chain: object | undefined = undefined;
  private _serial = NOT_WATCHED;
  private _reason: CompletionReason | undefined = undefined;
  private _phase = IDLE;
  private _isTimed = false;
  /** It was taken out of a timer that does not know, and will run it. */
  private _isStale = false;
  private _sinceMs = 0;

  /**
   * @param delayMs - milliseconds until it expires; `Infinity`: never.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `NaN` or `-Infinity`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a number.
   */
  constructor(delayMs: number) {
    if (!Number.isFinite(delayMs) && delayMs !== Infinity) throw invalidDelay('delayMs', delayMs);
    // A timer's task cannot wait for ever; what does is never given to a timer.
    super(delayMs === Infinity ? 0 : delayMs);
    if (delayMs === Infinity) (this as { delayMs: number }).delayMs = delayMs;
  }

  /**
   * Looks whether the condition holds, and if so returns `this.forceComplete()`, else false. Called by the
   * purgatory, twice when it comes and after every trigger, never while another call of it is running; and, if the
   * purgatory measures missed triggers, once when it expires, when `forceComplete` does nothing.
   */
  abstract tryComplete(): boolean;

  /** What to do when it is over. Called exactly once. It is on no key and in no timer any more. */
  abstract onComplete(reason: CompletionReason): void;

  /** Called after `onComplete`, and only if the timeout completed it. */
  abstract onExpiration(): void;

  /**
   * Completes it, whatever its condition says.
   *
   * @returns true for the one caller that completed it; `onComplete` has run then.
   */
  forceComplete(): boolean {
    if (isProbed(this)) {
      this._phase = HOLDS;
      return false;
    }
    const isChecked = this._phase === CHECKING || this._phase === TRIGGERED;
    return completeOperation(this, isChecked ? 'tried' : 'forced');
  }

  /**
   * Checks the condition: what a trigger does. If a check is running already, that one looks once more when it is
   * done, so that every trigger is followed by a check that begins after it.
   *
   * @returns whether this call completed it.
   */
  maybeTryComplete(): boolean {
    return checkOperation(this);
  }

  /** Whether it is over. */
  get isCompleted(): boolean {
    return this._reason !== undefined;
  }

  /** Its delay is over. Called by the timer. */
  override run(): void {
    const home = this._purgatory;
    if (this._isStale) {
      this._isStale = false;
      return;
    }
    home?.timeoutGone(this);
    if (!this.isCompleted) home?.aboutToExpire(this);
    if (this._purgatory !== home || this.isCompleted) return;
    try {
      completeOperation(this, 'expired');
    } finally {
      expire(this, home);
    }
  }

  /**
   * Cancels the timeout and nothing else: it stays under its keys, and waits for its condition alone.
   *
   * @returns whether it was waiting for its timeout.
   */
  override cancel(): boolean {
    const wasTimed = this._isTimed;
    const wasWaiting = super.cancel();
    // The timer is somebody's own, and cannot be told: what it will do is left undone.
    if (wasTimed && !wasWaiting) this._isStale = true;
    this._purgatory?.timeoutGone(this);
    return wasWaiting || wasTimed;
  }

  /** @internal What a console prints. */
  override [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ...super[CONSOLE_VIEW](), isCompleted: this.isCompleted }));
  }

  /** @internal The timer was closed, and has dropped it. */
  [DROPPED](): void {
    this._purgatory?.timeoutGone(this);
  }
}

/*
 * What a purgatory does to its operations. Not methods, so that a subclass neither sees nor overrides them.
 */

/** `cancel`, whatever a subclass has made of it. */
export function stopTimeout(operation: DelayedOperation): void {
  DelayedOperation.prototype.cancel.call(operation);
}

/** Also one that another loaded copy of this package has made. */
export function isDelayedOperation(value: unknown): value is DelayedOperation {
  return (
    value instanceof DelayedOperation || (isTimerTask(value) && '_purgatory' in value && '_chain' in value)
  );
}

/** Completes an operation that has not. @returns whether it did. */
export function completeOperation(operation: DelayedOperation, reason: CompletionReason): boolean {
  if (operation['_reason'] !== undefined) return false;
  operation['_reason'] = reason;
  const home = operation['_purgatory'];
  if (home === undefined) stopTimeout(operation);
  else home.release(operation, reason);
  try {
    operation.onComplete(reason);
  } catch (error) {
    reportTo(home, error, operation);
  }
  return true;
}

function expire(operation: DelayedOperation, home: OperationHome | undefined): void {
  try {
    operation.onExpiration();
  } catch (error) {
    reportTo(home, error, operation);
  }
}

/** `maybeTryComplete`, whatever a subclass has made of it. @returns whether this call completed the operation. */
export function checkOperation(operation: DelayedOperation): boolean {
  if (operation['_reason'] !== undefined) return false;
  if (operation['_phase'] !== IDLE) {
    noteTrigger(operation);
    return false;
  }
  const isAlone = homeOf(operation) === undefined;
  try {
    for (let tries = 1; ; tries++) {
      operation['_phase'] = CHECKING;
      tryOnce(operation);
      // Its own check may have moved it to another purgatory, or taken it out.
      const isWaiting = isAlone || homeOf(operation) !== undefined;
      if (!isWaiting || !wantsAnotherCheck(operation)) break;
      if (tries > MOST_REPEATS) {
        reportFailedCheck(homeOf(operation), endlessCheck(operation), operation);
        break;
      }
    }
  } finally {
    operation['_phase'] = IDLE;
  }
  return reasonOf(operation) === 'tried';
}

/** How it came to its end; undefined if it has not yet. */
export function reasonOf(operation: DelayedOperation): CompletionReason | undefined {
  return operation['_reason'];
}

/** An operation that says its condition holds, and forgot to complete itself, is completed all the same. */
function tryOnce(operation: DelayedOperation): void {
  const home = homeOf(operation);
  try {
    if (!operation.tryComplete()) return;
  } catch (error) {
    reportFailedCheck(home, error, operation);
    return;
  }
  if (operation['_purgatory'] === home) completeOperation(operation, 'tried');
}

/** A check is running, or its error is being reported: another one follows. */
function noteTrigger(operation: DelayedOperation): void {
  if (operation['_phase'] === CHECKING) operation['_phase'] = TRIGGERED;
  if (operation['_phase'] === REPORTING) operation['_phase'] = REPORTING_TRIGGERED;
}

/** It was triggered while it was checked, and has not completed. */
function wantsAnotherCheck(operation: DelayedOperation): boolean {
  return operation['_phase'] === TRIGGERED && operation['_reason'] === undefined;
}

function endlessCheck(operation: DelayedOperation): EscapementError {
  return new EscapementError(
    'ERR_CHECK_ENDLESS',
    `the check of a ${operation.constructor.name} has triggered itself ${MOST_REPEATS} times`,
    { op: 'DelayedOperation.maybeTryComplete' },
  );
}

/** Whether the condition of an operation holds; it is asked, and kept from completing. */
export function conditionHolds(operation: DelayedOperation): boolean {
  if (operation['_phase'] !== IDLE) return false;
  operation['_phase'] = PROBING;
  try {
    return operation.tryComplete() || operation['_phase'] === HOLDS;
  } finally {
    operation['_phase'] = IDLE;
  }
}

/** Whether it is being asked, and must not start anything. */
export function isProbed(operation: DelayedOperation): boolean {
  return operation['_phase'] >= PROBING;
}

/**
 * Reports the error of a check. The check is over by then: an error handler that completes the operation forces it. A trigger
 * by the handler does not begin a check inside this one, or an operation that always throws would exhaust the stack.
 */
export function reportFailedCheck(
  home: OperationHome | undefined,
  error: unknown,
  operation: DelayedOperation,
): void {
  if (operation['_phase'] === CHECKING) operation['_phase'] = REPORTING;
  if (operation['_phase'] === TRIGGERED) operation['_phase'] = REPORTING_TRIGGERED;
  try {
    reportTo(home, error, operation);
  } finally {
    if (operation['_phase'] === REPORTING) operation['_phase'] = CHECKING;
    if (operation['_phase'] === REPORTING_TRIGGERED) operation['_phase'] = TRIGGERED;
  }
}

/** An error of the operation's code: its purgatory is told; without one, so is the caller. */
function reportTo(home: OperationHome | undefined, error: unknown, operation: DelayedOperation): void {
  if (home === undefined) throw error;
  home.report(error, operation);
}

/** The purgatory that an operation is in, or is being put into. */
export function homeOf(operation: DelayedOperation): OperationHome | undefined {
  return operation['_purgatory'];
}

export function setHome(operation: DelayedOperation, home: OperationHome | undefined): void {
  operation['_purgatory'] = home;
}

/** The chain of its watchers, of which only the latest is known here. */
export function chainOf(operation: DelayedOperation): object | undefined {
  return operation['_chain'];
}

export function setChain(operation: DelayedOperation, chain: object | undefined, serial: number): void {
  operation['_chain'] = chain;
  operation['_serial'] = serial;
}

/** When it came, as a number that grows; NOT_WATCHED if it is under no key. */
export function serialOf(operation: DelayedOperation): number {
  return operation['_serial'];
}

/** Whether its timeout has been started by its purgatory, and is neither over nor cancelled. */
export function isTimed(operation: DelayedOperation): boolean {
  return operation['_isTimed'];
}

export function setTimed(operation: DelayedOperation, timed: boolean): void {
  operation['_isTimed'] = timed;
}

/** When it came, in milliseconds on its purgatory's clock; only if somebody measures. */
export function sinceOf(operation: DelayedOperation): number {
  return operation['_sinceMs'];
}

export function setSince(operation: DelayedOperation, sinceMs: number): void {
  operation['_sinceMs'] = sinceMs;
}
