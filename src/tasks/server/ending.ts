import { isAbortError } from '../../core/abort-error.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import type { Broker, CancelOutcome, LeasedTask } from '../broker/broker.ts';
import { errorText, RevokeTask, SkipRetry } from '../handler-errors.ts';
import { withoutRetention } from '../task-message.ts';
import type { TaskRun } from './run.ts';
import { retryDelayOf, type ResolvedServerOptions } from './server-options.ts';

/** How a run ends. */
export interface Ending {
  readonly kind: 'completed' | 'revoked' | 'retried' | 'archived' | 'discarded' | 'released' | 'lost';
  readonly error: unknown;
  /** Whether the error counts as one of the task's retries. */
  readonly isFailure: boolean;
  /** When the task is retried, in wall-clock milliseconds; 0 if it is not. */
  readonly atMs: number;
  /** What has become of the task, if the run was cancelled. */
  readonly cancelOutcome: CancelOutcome | undefined;
}

const COMPLETED: Ending = {
  ...{ kind: 'completed', error: undefined, isFailure: false, atMs: 0, cancelOutcome: undefined },
};

/** A handler that has resolved has done the task, even if the run was interrupted, unless the lease is lost. */
export function endingOfSuccess(run: TaskRun): Ending {
  return run.isLeaseLost ? lost(run.reason) : COMPLETED;
}

/** The options that decide about failures. */
type FailureRules = Pick<ResolvedServerOptions, 'broker' | 'isFailure' | 'retryDelayMs'>;

/**
 * Returns the ending of a run that has failed, or was given up with the reason of its interruption. In this order:
 *
 *      the lease is lost                         nothing is written
 *      RevokeTask                                completed, and not retained
 *      it was cancelled, to be deleted           discarded
 *      it was cancelled, to be archived          archived
 *      the server is shutting down               back to the head of its queue; except after SkipRetry
 *      the error is not a failure                retried, without counting
 *      SkipRetry, or no retries are left         archived
 *      any other error                           retried
 */
export function endingOfFailure(run: TaskRun, thrown: unknown, rules: FailureRules): Ending {
  const { reason, cancelOutcome } = run;
  const error = isInterruption(run, thrown) ? reason : thrown;
  if (run.isLeaseLost) return lost(error);
  if (holds((one) => RevokeTask.is(one), error)) return ending('revoked', error);
  if (cancelOutcome === 'delete') return ending('discarded', error, cancelOutcome);
  if (cancelOutcome === 'archive') return ending('archived', error, cancelOutcome);
  const skipsRetry = holds((one) => SkipRetry.is(one), error);
  const isShutDown = reason?.code === 'ERR_SERVER_CLOSED' && cancelOutcome === undefined;
  if (isShutDown && !skipsRetry) return ending('released', error);
  const { retried, maxRetry } = run.leased.message;
  const isFailure = counts(error, rules);
  if (isFailure && (skipsRetry || retried >= maxRetry)) {
    return ending('archived', error, cancelOutcome === undefined ? undefined : 'archive');
  }
  const atMs = rules.broker.clock.wallNow() + retryDelayOf(rules.retryDelayMs, retried, error, run.task);
  return { kind: 'retried', error, isFailure, atMs, cancelOutcome };
}

export function lost(error: unknown): Ending {
  return ending('lost', error);
}

function ending(kind: Ending['kind'], error: unknown, cancelOutcome?: CancelOutcome): Ending {
  return { kind, error, isFailure: true, atMs: 0, cancelOutcome };
}

/** Whether a handler rejects because it was interrupted: with the reason itself, or with an AbortError as Node's functions do. */
function isInterruption({ reason }: TaskRun, error: unknown): boolean {
  return reason !== undefined && (error === reason || holds(isAbortError, error));
}

/** A thrown value may itself throw when its properties are read. */
function holds(test: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return test(error);
  } catch {
    return false;
  }
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

export function writeEnding(broker: Broker, leased: LeasedTask, how: Ending): Promise<void> {
  const { kind, error, isFailure, atMs } = how;
  switch (kind) {
    case 'completed':
      return broker.complete(leased);
    case 'revoked':
      return broker.complete({ ...leased, message: withoutRetention(leased.message) });
    case 'retried':
      return broker.retry(leased, { error: errorText(error), isFailure }, atMs);
    case 'archived':
      return broker.archive(leased, { error: errorText(error), isFailure: true });
    case 'discarded':
      return broker.discard(leased);
    case 'released':
      return broker.release(leased);
    case 'lost':
      return Promise.resolve();
  }
}
