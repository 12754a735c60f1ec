import { BackOff } from '../../core/back-off.ts';
import { CoalescedRun } from '../../core/coalesced-run.ts';
import { hasCode } from '../../core/errors.ts';
import { guarded, reportUncaught } from '../../core/report-uncaught.ts';
import { isAbortError } from '../../core/validate.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { Broker, CancelOutcome, LeasedTask } from '../broker/broker.ts';
import { errorText, RevokeTask, SkipRetry } from '../handler.ts';
import { notRetained } from '../task-options.ts';
import type { LeaseKeeper } from './leases.ts';
import type { Ending, Reports } from './reports.ts';
import { serverClosed, type RunTable, type TaskRun } from './run.ts';
import { type ResolvedServerOptions, retryDelayOf } from './server-options.ts';

/** An ending that may not have been written. */
interface Unwritten {
  readonly run: TaskRun;
  readonly ending: Ending;
  readonly endedAtMs: number;
  /** From then on another worker may have the task; on the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Ends runs: decides the outcome of each, writes it to the broker, reports it, and frees the slot of the run.
 *
 *      handler settled, given up, put back ──► ending ──► write ──► report ──► free the slot
 *                                                           │ the broker was not reached
 *                                                           └──► write again, with back-off, until the lease is over
 *
 * WHY it writes again: without that a single lost reply would mean that a task is done twice. (asynq's syncer has not worked since
 * its version 0.25.) A write that failed may have taken effect all the same. Then the next attempt fails because the lease is lost; and
 * as long as the lease would last, only that write can have ended it.
 */
export class Settler {
  readonly #options: ResolvedServerOptions;
  readonly #timer: SystemTimer;
  readonly #runs: RunTable;
  readonly #leases: LeaseKeeper;
  readonly #reports: Reports;
  readonly #backOff = new BackOff();
  readonly #stopping = new AbortController();
  #unwritten: Unwritten[] = [];
  /** Number of endings that are being written again. */
  #writing = 0;
  readonly #retries = new CoalescedRun(() => this.#retry());

  constructor(
    options: ResolvedServerOptions,
    timer: SystemTimer,
    runs: RunTable,
    leases: LeaseKeeper,
    reports: Reports,
  ) {
    this.#options = options;
    this.#timer = timer;
    this.#runs = runs;
    this.#leases = leases;
    this.#reports = reports;
  }

  /** Number of endings that still have to be written again. */
  get unwritten(): number {
    return this.#unwritten.length + this.#writing;
  }

  /** Called when the handler has settled, and when a run is given up or put back. Never rejects. */
  async settle(run: TaskRun, hasFailed: boolean, error: unknown): Promise<void> {
    if (run.isOver) {
      const fields = hasFailed ? fieldsOf(run, error) : fieldsOf(run);
      this.#options.logger.warn(fields, 'a handler has settled after its run was given up');
      return;
    }
    run.end();
    const ending = hasFailed ? this.#endingOfFailure(run, error) : endingOfSuccess(run);
    const endedAtMs = this.#timer.clock.now();
    try {
      await writeEnding(this.#options.broker, run.leased, ending);
    } catch (thrown) {
      this.#options.logger.warn(fieldsOf(run, thrown), `task not ${ending.kind}`);
      this.#notWritten({ run, ending, endedAtMs, untilMs: this.#leases.leaseUntilMs(run) }, thrown);
      this.#free(run);
      return;
    }
    this.#written(run, ending, endedAtMs);
    this.#free(run);
  }

  /** Tries to write everything once more, and gives up the rest. */
  async shutdown(): Promise<void> {
    this.#stopping.abort();
    await this.#retries.running;
    await this.#writeAgain();
    for (const unwritten of this.#unwritten.splice(0)) this.#lose(unwritten, serverClosed());
  }

  #endingOfFailure(run: TaskRun, error: unknown): Ending {
    const { errorHandler } = this.#options;
    const ending = endingOfFailure(run, error, this.#options);
    if (ending.kind === 'released' || errorHandler === undefined) return ending;
    guarded(() => {
      errorHandler(ending.error, run.task, run.context);
    });
    return ending;
  }

  #free(run: TaskRun): void {
    this.#leases.release(run);
    this.#runs.remove(run);
  }

  #written(run: TaskRun, ending: Ending, endedAtMs: number): void {
    const { logger } = this.#options;
    if (ending.kind === 'retried' && ending.isFailure)
      logger.warn(fieldsOf(run, ending.error), 'task failed, it is retried');
    if (ending.kind === 'archived' && ending.cancelOutcome === undefined)
      logger.warn(fieldsOf(run, ending.error), 'task archived');
    if (ending.kind === 'lost') logger.warn(fieldsOf(run, ending.error), 'lease of a task lost');
    this.#reports.ended(run, ending, endedAtMs);
  }

  #lose({ run, endedAtMs }: Unwritten, error: unknown): void {
    this.#reports.ended(run, lost(error), endedAtMs);
  }

  #notWritten(unwritten: Unwritten, error: unknown): void {
    if (hasCode(error, 'ERR_LEASE_LOST', 'ERR_BROKER_CLOSED')) this.#lose(unwritten, error);
    else if (this.#isStopped()) this.#lose(unwritten, serverClosed());
    else {
      this.#unwritten.push(unwritten);
      this.#retries.trigger();
    }
  }

  async #retry(): Promise<void> {
    while (this.#unwritten.length > 0 && !this.#isStopped()) {
      await this.#pause();
      if (!this.#isStopped()) await this.#writeAgain();
    }
  }

  /** A method, so that TypeScript does not narrow its value across awaits. */
  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Ends at the latest when the first lease does: until then its loss can be distinguished from a write that took effect. */
  async #pause(): Promise<void> {
    const firstEndMs = this.#unwritten.reduce((least, { untilMs }) => Math.min(least, untilMs), Infinity);
    const leftMs = firstEndMs - this.#timer.clock.now();
    const backOffMs = this.#backOff.next();
    const pauseMs = leftMs > 0 ? Math.min(backOffMs, leftMs) : backOffMs;
    const { signal } = this.#stopping;
    await this.#timer.sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }

  /** Writes all endings at once: they are of different tasks. */
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
      await writeEnding(this.#options.broker, run.leased, ending);
    } catch (error) {
      const isPast = this.#timer.clock.now() >= untilMs;
      if (isPast || !hasCode(error, 'ERR_LEASE_LOST')) {
        if (isPast || hasCode(error, 'ERR_BROKER_CLOSED')) this.#lose(unwritten, error);
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

const COMPLETED = ending('completed', undefined);

/** A handler that has resolved has done the task, even if the run was interrupted, unless the lease is lost. */
function endingOfSuccess(run: TaskRun): Ending {
  return run.isLeaseLost ? lost(run.reason) : COMPLETED;
}

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
  if (run.isLeaseLost) return lost(error);
  if (RevokeTask.is(error)) return ending('revoked', error);
  if (cancelOutcome === 'delete') return ending('discarded', error, cancelOutcome);
  if (cancelOutcome === 'archive') return ending('archived', error, cancelOutcome);
  const skipsRetry = SkipRetry.is(error);
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

function lost(error: unknown): Ending {
  return ending('lost', error);
}

function ending(kind: Ending['kind'], error: unknown, cancelOutcome?: CancelOutcome): Ending {
  return { kind, error, isFailure: true, atMs: 0, cancelOutcome };
}

/** Whether a handler rejects because it was interrupted: with the reason itself, or with an AbortError as Node's functions do. */
function isInterruption({ reason }: TaskRun, error: unknown): boolean {
  return reason !== undefined && (error === reason || isAbortError(error));
}

function counts(error: unknown, { isFailure }: FailureRules): boolean {
  if (isFailure === undefined) return true;
  try {
    return (isFailure(error) as unknown) !== false; // a function without `return` must not retry for ever
  } catch (thrown) {
    reportUncaught(thrown);
    return true;
  }
}

function writeEnding(broker: Broker, leased: LeasedTask, how: Ending): Promise<void> {
  const { kind, error, isFailure, atMs } = how;
  switch (kind) {
    case 'completed':
      return broker.complete(leased);
    case 'revoked':
      return broker.complete({ ...leased, message: notRetained(leased.message) });
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
