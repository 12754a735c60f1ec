import { isAbortError } from '../../core/abort-error.ts';
import { BackOff } from '../../core/back-off.ts';
import { EscapementError, type EscapementErrorCode } from '../../core/errors.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { Broker, LeasedTask } from '../broker/broker.ts';
import { errorText, RevokeTask, SkipRetry } from '../handler-errors.ts';
import type { LeaseKeeper } from './leases.ts';
import type { Reports } from './reports.ts';
import {
  serverClosed,
  type ArchiveEnding,
  type Ending,
  type RetryEnding,
  type RunSettler,
  type RunTable,
  type TaskRun,
} from './run.ts';
import { retryDelayOf, type ResolvedServerOptions } from './server-options.ts';

/** The components that learn of the end of a run. */
export interface SettlerParts {
  readonly runs: RunTable;
  readonly leases: LeaseKeeper;
  readonly reports: Reports;
}

/** An ending that may not have been written. */
interface Unwritten {
  readonly run: TaskRun;
  readonly ending: Ending;
  readonly endedAtMs: number;
  /** From then on another worker may have the task; on the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Ends runs: decides the outcome of each, writes it to the broker, reports it, and frees the place of the run.
 *
 *      handler settled, given up, put back ──► ending ──► write ──► report ──► free the place
 *                                                           │ the broker was not reached
 *                                                           └──► write again, with back-off, until the lease is over
 *
 * WHY it writes again: without that a single lost reply would mean that a task is done twice. (asynq's syncer has not worked since
 * its version 0.25.) A write that failed may have taken effect all the same. Then the next attempt is told that the lease is lost;
 * and as long as the lease would last, only that write can have ended it.
 */
export class Settler implements RunSettler {
  readonly #options: ResolvedServerOptions;
  readonly #timer: SystemTimer;
  readonly #parts: SettlerParts;
  readonly #backOff = new BackOff();
  readonly #stopping = new AbortController();
  #unwritten: Unwritten[] = [];
  /** Number of those that are being written. */
  #writing = 0;
  #retrying: Promise<void> | undefined;

  constructor(options: ResolvedServerOptions, timer: SystemTimer, parts: SettlerParts) {
    this.#options = options;
    this.#timer = timer;
    this.#parts = parts;
  }

  /** Number of endings that still have to be written again. */
  get unwritten(): number {
    return this.#unwritten.length + this.#writing;
  }

  async settle(run: TaskRun, hasFailed: boolean, error: unknown): Promise<void> {
    if (run.isOver) {
      const fields = hasFailed ? fieldsOf(run, error) : fieldsOf(run);
      this.#options.logger.warn(fields, 'a handler has settled after its run was given up');
      return;
    }
    run.end();
    const ending = hasFailed ? this.#endingOfFailure(run, error) : endingOfSuccess(run);
    await this.#write(run, ending, this.#timer.clock.now());
    this.#parts.leases.release(run);
    this.#parts.runs.remove(run);
  }

  /** Tries to write everything once more, and gives up the rest. */
  async shutdown(): Promise<void> {
    this.#stopping.abort();
    await this.#retrying;
    await this.#writeAgain();
    for (const unwritten of this.#unwritten.splice(0)) this.#lose(unwritten, serverClosed());
  }

  #endingOfFailure(run: TaskRun, error: unknown): Ending {
    const { errorHandler } = this.#options;
    const ending = endingOfFailure(run, error, this.#options);
    if (ending.kind === 'released' || errorHandler === undefined) return ending;
    try {
      errorHandler(ending.error ?? error, run.task, run.context);
    } catch (thrown) {
      reportUncaught(thrown);
    }
    return ending;
  }

  async #write(run: TaskRun, ending: Ending, endedAtMs: number): Promise<void> {
    try {
      await writeEnding(this.#options.broker, run, ending);
    } catch (error) {
      this.#options.logger.warn(fieldsOf(run, error), `task not ${ending.kind}`);
      this.#notWritten({ run, ending, endedAtMs, untilMs: this.#parts.leases.leaseUntilMs(run) }, error);
      return;
    }
    this.#written(run, ending, endedAtMs);
  }

  #written(run: TaskRun, ending: Ending, endedAtMs: number): void {
    const { logger } = this.#options;
    if (ending.kind === 'archived') logger.warn(fieldsOf(run, ending.error), 'task archived');
    if (ending.kind === 'lost') logger.warn(fieldsOf(run, ending.error), 'lease of a task lost');
    this.#parts.reports.ended(run, ending, endedAtMs);
  }

  #lose({ run, endedAtMs }: Unwritten, error: unknown): void {
    this.#parts.reports.ended(run, { kind: 'lost', error }, endedAtMs);
  }

  #notWritten(unwritten: Unwritten, error: unknown): void {
    const code = codeOf(error);
    if (code === 'ERR_LEASE_LOST' || code === 'ERR_BROKER_CLOSED') this.#lose(unwritten, error);
    else if (this.#isStopped()) this.#lose(unwritten, serverClosed());
    else {
      this.#unwritten.push(unwritten);
      this.#retrying ??= this.#retry();
    }
  }

  async #retry(): Promise<void> {
    while (this.#unwritten.length > 0 && !this.#isStopped()) {
      await this.#pause();
      if (!this.#isStopped()) await this.#writeAgain();
    }
    this.#retrying = undefined;
  }

  /** A method, so that TypeScript does not narrow its value across awaits. */
  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Ends at the latest when the first lease does: until then its loss can be told from a write that took effect. */
  async #pause(): Promise<void> {
    const leftMs = Math.min(...this.#unwritten.map(({ untilMs }) => untilMs)) - this.#timer.clock.now();
    const backOffMs = this.#backOff.next();
    const pauseMs = leftMs > 0 ? Math.min(backOffMs, leftMs) : backOffMs;
    const { signal } = this.#stopping;
    await this.#timer.sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }

  /** All at once: they are of different tasks. */
  async #writeAgain(): Promise<void> {
    const unwritten = this.#unwritten.splice(0);
    this.#writing = unwritten.length;
    const isWritten = await Promise.all(unwritten.map((one) => this.#writeOneAgain(one)));
    this.#writing = 0;
    if (isWritten.includes(true)) this.#backOff.reset();
  }

  async #writeOneAgain(unwritten: Unwritten): Promise<boolean> {
    const { run, ending, endedAtMs, untilMs } = unwritten;
    try {
      await writeEnding(this.#options.broker, run, ending);
    } catch (error) {
      const isPast = this.#timer.clock.now() >= untilMs;
      const code = codeOf(error);
      if (code !== 'ERR_LEASE_LOST' || isPast) {
        if (isPast || code === 'ERR_BROKER_CLOSED') this.#lose(unwritten, error);
        else this.#unwritten.push(unwritten);
        return false;
      }
    }
    this.#written(run, ending, endedAtMs);
    return true;
  }
}

function fieldsOf({ leased }: TaskRun, ...errors: readonly unknown[]): object {
  const { id, queue, type } = leased.message;
  return { taskId: id, queue, type, ...(errors.length > 0 ? { err: errors[0] } : {}) };
}

function codeOf(error: unknown): EscapementErrorCode | undefined {
  return error instanceof EscapementError ? error.code : undefined;
}

// The outcome of a run.

const COMPLETED: Ending = { kind: 'completed', isRevoked: false };
const REVOKED: Ending = { kind: 'completed', isRevoked: true };

/** A handler that has resolved has done the task, even if the run was interrupted, unless the lease is lost. */
function endingOfSuccess(run: TaskRun): Ending {
  return run.isLeaseLost ? { kind: 'lost', error: run.reason } : COMPLETED;
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
function endingOfFailure(run: TaskRun, thrown: unknown, rules: FailureRules): Ending {
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
  if (cancelOutcome === undefined) return ending;
  if (ending.kind === 'retried') return { ...ending, kind: 'cancelled', outcome: 'retry' };
  return { kind: 'cancelled', error, outcome: 'archive', isFailure: true, atMs: 0 };
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

function endingByRetries(
  run: TaskRun,
  error: unknown,
  skipsRetry: boolean,
  rules: FailureRules,
): RetryEnding | ArchiveEnding {
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

function writeEnding(broker: Broker, { leased }: TaskRun, ending: Ending): Promise<void> {
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
