import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { invalidTimeout, isThenable } from '../core/validate.ts';
import { DROPPED, isTimerTask, TimerTask } from '../timer/timer-task.ts';

/**
 * How an operation completed:
 *
 * - `'tried'`: a check found that its condition held.
 * - `'forced'`: by a call of `forceComplete`.
 * - `'expired'`: by its timeout.
 * - `'closed'`: because its purgatory was closed.
 */
export type CompletionReason = 'tried' | 'forced' | 'expired' | 'closed';

/** The phase of an operation: no check; a check; a check that was triggered again meanwhile. */
const IDLE = 0;
const CHECKING = 1;
const TRIGGERED = 2;
/** The error of a check is being reported: the check is over, and may have been triggered again. */
const REPORTING = 3;
const REPORTING_TRIGGERED = 4;
/** The condition is being checked without completing the operation; and it holds. */
const PROBING = 5;
const HOLDS = 6;

/** The serial number of an operation that is under no key. */
export const NOT_WATCHED = 0;

/** How often a check may trigger itself: more is endless. */
const MOST_REPEATS = 10_000;

/** The part of a purgatory that its operations call. */
export interface OperationOwner {
  /** Removes a completed operation from every key and from the timer. */
  release(operation: DelayedOperation, reason: CompletionReason): void;
  /** Called for an operation whose delay is over, before it completes. */
  beforeExpiry(operation: DelayedOperation): void;
  /** Called when an operation has no pending timeout any more. */
  timeoutEnded(operation: DelayedOperation): void;
  /** Reports an error of the operation's code. */
  report(error: unknown, operation: DelayedOperation): void;
}

/**
 * An operation that is pending until a condition holds, and not longer than a delay: an answer that needs three replicas, a
 * long poll that needs a kilobyte. It completes once. A subclass implements the condition; its objects are given to a purgatory
 * with the keys that the condition depends on.
 *
 * HOW. `tryComplete` checks the condition. The purgatory calls it when the operation is added, and again after every trigger of
 * one of its keys. Completion by any path first removes the operation from every key and from the timer, and then runs
 * `onComplete`.
 *
 * After Kafka's class of this name. Differs in that `onComplete` receives the reason, and in that nothing refers to a completed
 * operation.
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
  private _purgatory: OperationOwner | undefined = undefined;
  private _chain: object | undefined = undefined;
  private _serial = NOT_WATCHED;
  private _reason: CompletionReason | undefined = undefined;
  private _phase = IDLE;
  private _isTimed = false;
  /** Whether it was cancelled in a timer of another class, which will run it all the same. */
  private _isStale = false;
  private _sinceMs = 0;

  /**
   * @param delayMs - milliseconds until it expires; `Infinity`: never.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `NaN` or `-Infinity`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a number.
   */
  constructor(delayMs: number) {
    if (!Number.isFinite(delayMs) && delayMs !== Infinity) throw invalidTimeout('delayMs', delayMs);
    // A timer refuses an infinite delay; an operation without a timeout is never added to one.
    super(delayMs === Infinity ? 0 : delayMs);
    if (delayMs === Infinity) (this as { delayMs: number }).delayMs = delayMs;
  }

  /**
   * Checks whether the condition holds, and if so returns `this.forceComplete()`, else false. Called by the
   * purgatory twice when the operation is added and after every trigger, never while another call of it is running; and, if
   * the purgatory has metrics, once when it expires, when `forceComplete` does nothing.
   */
  abstract tryComplete(): boolean;

  /** Called exactly once, when the operation has completed. By then it is under no key and in no timer. */
  abstract onComplete(reason: CompletionReason): void;

  /** Called after `onComplete`, and only if the operation completed by its timeout. */
  abstract onExpiration(): void;

  /**
   * Completes the operation, whether or not its condition holds.
   *
   * @returns true for the one caller that completed it; then `onComplete` has run.
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
   * Checks the condition, as a trigger does. A check that is running already is repeated when it ends, so that every trigger is
   * followed by a check that begins after it.
   *
   * @returns whether this call completed it.
   */
  maybeTryComplete(): boolean {
    return checkOperation(this);
  }

  /** Whether the operation has completed. */
  get isCompleted(): boolean {
    return this._reason !== undefined;
  }

  /** Called by the timer when the delay is over. */
  override run(): void {
    const owner = this._purgatory;
    if (this._isStale) {
      this._isStale = false;
      return;
    }
    owner?.timeoutEnded(this);
    owner?.beforeExpiry(this);
    if (this._purgatory !== owner || this.isCompleted) return;
    try {
      completeOperation(this, 'expired');
    } finally {
      expire(this, owner);
    }
  }

  /**
   * Cancels only the timeout: the operation stays under its keys, and completes when its condition holds.
   *
   * @returns whether the timeout was pending.
   */
  override cancel(): boolean {
    const wasTimed = this._isTimed;
    const wasWaiting = super.cancel();
    // A timer of another class cannot remove it: `run` ignores the call.
    if (wasTimed && !wasWaiting) this._isStale = true;
    this._purgatory?.timeoutEnded(this);
    return wasWaiting || wasTimed;
  }

  /** @internal Returns what a console prints. */
  override [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ...super[CONSOLE_VIEW](), isCompleted: this.isCompleted }));
  }

  /** @internal Called when the timer was closed and has dropped the operation. */
  [DROPPED](): void {
    this._purgatory?.timeoutEnded(this);
  }
}

/*
 * What a purgatory does with its operations. Not methods, so that a subclass neither sees nor overrides them.
 */

/** Calls `cancel` of this class, although a subclass may override it. */
export function stopTimeout(operation: DelayedOperation): void {
  DelayedOperation.prototype.cancel.call(operation);
}

/** Whether a value is an operation, of this or of another loaded copy of the package. */
export function isDelayedOperation(value: unknown): value is DelayedOperation {
  return isTimerTask(value) && '_purgatory' in value;
}

/** Completes an operation unless it has completed. @returns whether it did. */
export function completeOperation(operation: DelayedOperation, reason: CompletionReason): boolean {
  if (operation['_reason'] !== undefined) return false;
  operation['_reason'] = reason;
  const owner = operation['_purgatory'];
  if (owner === undefined) stopTimeout(operation);
  else owner.release(operation, reason);
  try {
    operation.onComplete(reason);
  } catch (error) {
    reportTo(owner, error, operation);
  }
  return true;
}

function expire(operation: DelayedOperation, owner: OperationOwner | undefined): void {
  try {
    operation.onExpiration();
  } catch (error) {
    reportTo(owner, error, operation);
  }
}

/** Checks an operation, although a subclass may override `maybeTryComplete`. @returns whether this call completed it. */
export function checkOperation(operation: DelayedOperation): boolean {
  if (operation['_reason'] !== undefined) return false;
  if (operation['_phase'] !== IDLE) {
    noteTrigger(operation);
    return false;
  }
  const isAlone = ownerOf(operation) === undefined;
  try {
    for (let tries = 1; ; tries++) {
      operation['_phase'] = CHECKING;
      tryOnce(operation);
      // The check may have moved the operation to another purgatory, or cancelled it.
      const isWaiting = isAlone || ownerOf(operation) !== undefined;
      if (!isWaiting || !wantsAnotherCheck(operation)) break;
      if (tries > MOST_REPEATS) {
        reportFailedCheck(ownerOf(operation), endlessCheck(operation), operation);
        break;
      }
    }
  } finally {
    operation['_phase'] = IDLE;
  }
  return reasonOf(operation) === 'tried';
}

/** How an operation completed; undefined if it has not. */
function reasonOf(operation: DelayedOperation): CompletionReason | undefined {
  return operation['_reason'];
}

/**
 * If `tryComplete` returns true and has not completed the operation, this function completes it. A promise is an error: an `async
 * tryComplete`, which only TypeScript rejects, would complete every operation at once.
 */
function tryOnce(operation: DelayedOperation): void {
  const owner = ownerOf(operation);
  try {
    const holds: unknown = operation.tryComplete();
    if (!holds) return;
    if (isThenable(holds)) throw wrongType('tryComplete()', 'a boolean, unlike tryCompleteAsync()', holds);
  } catch (error) {
    reportFailedCheck(owner, error, operation);
    return;
  }
  if (operation['_purgatory'] === owner) completeOperation(operation, 'tried');
}

/** Notes that another check must follow the one that is running, or whose error is being reported. */
function noteTrigger(operation: DelayedOperation): void {
  if (operation['_phase'] === CHECKING) operation['_phase'] = TRIGGERED;
  if (operation['_phase'] === REPORTING) operation['_phase'] = REPORTING_TRIGGERED;
}

/** Whether an operation was triggered during its check, and has not completed. */
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

/** Checks the condition of an operation without completing it. */
export function conditionHolds(operation: DelayedOperation): boolean {
  if (operation['_phase'] !== IDLE) return false;
  operation['_phase'] = PROBING;
  try {
    return operation.tryComplete() || operation['_phase'] === HOLDS;
  } finally {
    operation['_phase'] = IDLE;
  }
}

/** Whether `conditionHolds` runs for an operation, which must start nothing then. */
export function isProbed(operation: DelayedOperation): boolean {
  return operation['_phase'] >= PROBING;
}

/**
 * Reports the error of a check. The check is over by then: an error handler that completes the operation forces it. A trigger
 * by the handler does not begin a check inside this one, or an operation that always throws would exhaust the stack.
 */
export function reportFailedCheck(
  owner: OperationOwner | undefined,
  error: unknown,
  operation: DelayedOperation,
): void {
  if (operation['_phase'] === CHECKING) operation['_phase'] = REPORTING;
  if (operation['_phase'] === TRIGGERED) operation['_phase'] = REPORTING_TRIGGERED;
  try {
    reportTo(owner, error, operation);
  } finally {
    if (operation['_phase'] === REPORTING) operation['_phase'] = CHECKING;
    if (operation['_phase'] === REPORTING_TRIGGERED) operation['_phase'] = TRIGGERED;
  }
}

/** Reports an error of the operation's code to its purgatory; without one, throws it to the caller. */
function reportTo(owner: OperationOwner | undefined, error: unknown, operation: DelayedOperation): void {
  if (owner === undefined) throw error;
  owner.report(error, operation);
}

/** The purgatory that an operation is in, or is being added to. */
export function ownerOf(operation: DelayedOperation): OperationOwner | undefined {
  return operation['_purgatory'];
}

export function setOwner(operation: DelayedOperation, owner: OperationOwner | undefined): void {
  operation['_purgatory'] = owner;
}

/** The latest watcher of an operation. */
export function chainOf(operation: DelayedOperation): object | undefined {
  return operation['_chain'];
}

export function setChain(operation: DelayedOperation, chain: object | undefined, serial: number): void {
  operation['_chain'] = chain;
  operation['_serial'] = serial;
}

/** Its number in order of arrival; NOT_WATCHED if it is under no key. */
export function serialOf(operation: DelayedOperation): number {
  return operation['_serial'];
}

/** Whether its purgatory has started its timeout, which is neither over nor cancelled. */
export function isTimed(operation: DelayedOperation): boolean {
  return operation['_isTimed'];
}

export function setTimed(operation: DelayedOperation, timed: boolean): void {
  operation['_isTimed'] = timed;
}

/** When it was added, in milliseconds on the clock of its purgatory; only in a purgatory with metrics. */
export function sinceOf(operation: DelayedOperation): number {
  return operation['_sinceMs'];
}

export function setSince(operation: DelayedOperation, sinceMs: number): void {
  operation['_sinceMs'] = sinceMs;
}
