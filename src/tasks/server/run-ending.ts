import { isAbortError } from '../../core/abort-error.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import type { Broker, CancelOutcome, LeasedTask } from '../broker/broker.ts';
import { RevokeTask } from '../revoke-task.ts';
import { SkipRetry } from '../skip-retry.ts';
import { errorText } from './error-text.ts';
import { retryDelayOf, type RetryDelay } from './retry-delay.ts';
import type { TaskRun } from './task-run.ts';

/** What becomes of a run. */
export type Ending =
  | { readonly kind: 'completed'; readonly error?: undefined; readonly isRevoked: boolean }
  | RetryEnding
  | { readonly kind: 'archived'; readonly error: unknown }
  | CancelledEnding
  | { readonly kind: 'released'; readonly error: unknown }
  | { readonly kind: 'lost'; readonly error: unknown };

interface RetryEnding {
  readonly kind: 'retried';
  readonly error: unknown;
  readonly isFailure: boolean;
  readonly atMs: number;
}

interface CancelledEnding {
  readonly kind: 'cancelled';
  readonly error: unknown;
  readonly outcome: CancelOutcome;
  /** If it is tried again. */
  readonly isFailure: boolean;
  readonly atMs: number;
}

/** What the user has said about failures. */
export interface FailureRules {
  readonly broker: Broker;
  readonly isFailure: ((error: unknown) => boolean) | undefined;
  readonly retryDelayMs: RetryDelay;
}

const COMPLETED: Ending = { kind: 'completed', isRevoked: false };
const REVOKED: Ending = { kind: 'completed', isRevoked: true };

/** Of a run whose handler has resolved: that counts, whatever has interrupted it, if the task is still ours. */
export function endingOfSuccess(run: TaskRun): Ending {
  return run.isLeaseLost ? { kind: 'lost', error: run.reason } : COMPLETED;
}

/**
 * Of a run that has failed, or was given up with the reason of its interruption. In this order:
 *
 *      the lease is lost                         nothing is written
 *      RevokeTask                                completed, and not retained
 *      it was cancelled, to be deleted           discarded
 *      it was cancelled, to be archived          archived
 *      the server shuts down                     back to the head of its queue; unless it said SkipRetry
 *      the error is no failure                   tried again, and does not count
 *      SkipRetry, or no retries are left         archived
 *      any other                                 tried again
 */
export function endingOfFailure(run: TaskRun, thrown: unknown, rules: FailureRules): Ending {
  const { reason, cancelOutcome } = run;
  const error = isInterruption(run, thrown) ? reason : thrown;
  if (run.isLeaseLost) return { kind: 'lost', error };
  if (holds((one) => RevokeTask.is(one), error)) return REVOKED;
  if (cancelOutcome === 'delete' || cancelOutcome === 'archive') {
    return { kind: 'cancelled', error, outcome: cancelOutcome, isFailure: true, atMs: 0 };
  }
  const skipsRetry = holds((one) => SkipRetry.is(one), error);
  const isShutDown = reason?.code === 'ERR_SERVER_CLOSED' && cancelOutcome === undefined;
  if (isShutDown && !skipsRetry) return { kind: 'released', error };
  const ending = endingByRetries(run, error, skipsRetry, rules);
  return cancelOutcome === undefined ? ending : cancelledAs(ending);
}

/** Whether a handler rejects because it was told to stop: with the reason itself, or as Node's own functions do. */
function isInterruption({ reason }: TaskRun, error: unknown): boolean {
  return reason !== undefined && (error === reason || holds(isAbortError, error));
}

/** What was thrown may throw again when it is looked at. */
function holds(test: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return test(error);
  } catch {
    return false;
  }
}

type FailureEnding = RetryEnding | { readonly kind: 'archived'; readonly error: unknown };

function endingByRetries(
  run: TaskRun,
  error: unknown,
  skipsRetry: boolean,
  rules: FailureRules,
): FailureEnding {
  const { retried, maxRetry } = run.leased.message;
  const isFailure = counts(error, rules);
  if (isFailure && (skipsRetry || retried >= maxRetry)) return { kind: 'archived', error };
  const delayMs = retryDelayOf(rules.retryDelayMs, retried, error, run.task);
  return { kind: 'retried', error, isFailure, atMs: rules.broker.clock.wallNow() + delayMs };
}

function counts(error: unknown, { isFailure }: FailureRules): boolean {
  if (isFailure === undefined) return true;
  try {
    return isFailure(error);
  } catch (thrown) {
    reportUncaught(thrown);
    return true;
  }
}

function cancelledAs(ending: FailureEnding): Ending {
  const { error } = ending;
  if (ending.kind === 'archived') {
    return { kind: 'cancelled', error, outcome: 'archive', isFailure: true, atMs: 0 };
  }
  return {
    kind: 'cancelled',
    error,
    outcome: 'retry',
    isFailure: ending.isFailure,
    atMs: ending.atMs,
  };
}

/** Makes an ending so. */
export function writeEnding(broker: Broker, { leased }: TaskRun, ending: Ending): Promise<void> {
  switch (ending.kind) {
    case 'completed':
      return broker.complete(ending.isRevoked ? unretained(leased) : leased);
    case 'retried':
      return broker.retry(leased, failureOf(ending.error, ending.isFailure), ending.atMs);
    case 'archived':
      return broker.archive(leased, failureOf(ending.error, true));
    case 'released':
      return broker.release(leased);
    case 'lost':
      return Promise.resolve();
    case 'cancelled':
      if (ending.outcome === 'delete') return broker.discard(leased);
      if (ending.outcome === 'archive') return broker.archive(leased, failureOf(ending.error, true));
      return broker.retry(leased, failureOf(ending.error, ending.isFailure), ending.atMs);
  }
}

function unretained(leased: LeasedTask): LeasedTask {
  return { ...leased, message: { ...leased.message, retentionMs: 0 } };
}

function failureOf(error: unknown, isFailure: boolean): { error: string; isFailure: boolean } {
  return { error: errorText(error), isFailure };
}
