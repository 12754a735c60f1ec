import { reportUncaught } from '../../core/report-uncaught.ts';
import { codeOf } from './code-of.ts';
import {
  endingOfFailure,
  endingOfSuccess,
  writeEnding,
  type Ending,
  type FailureRules,
} from './run-ending.ts';
import type { Logger } from './logger.ts';
import type { RunReports } from './run-reports.ts';
import type { TaskErrorHandler } from './server-options.ts';
import type { Syncer } from './syncer.ts';
import type { TaskRun } from './task-run.ts';

/** What settling needs. */
export interface SettlerOptions extends FailureRules {
  readonly errorHandler: TaskErrorHandler | undefined;
  readonly logger: Logger;
  /** Until when nobody else has the task; on the monotonic clock. */
  readonly leaseUntilMs: (run: TaskRun) => number;
}

/** Writes what becomes of a run, once, and tells of it. Resolves with the run; never rejects. */
export class RunSettler {
  readonly #options: SettlerOptions;
  readonly #syncer: Syncer;
  readonly #reports: RunReports;

  constructor(options: SettlerOptions, syncer: Syncer, reports: RunReports) {
    this.#options = options;
    this.#syncer = syncer;
    this.#reports = reports;
  }

  /** Its handler has resolved. */
  succeeded(run: TaskRun): Promise<TaskRun> {
    return this.#write(run, endingOfSuccess(run));
  }

  /** Its handler has rejected, or it was given up. */
  async failed(run: TaskRun, error: unknown): Promise<TaskRun> {
    const ending = endingOfFailure(run, error, this.#options);
    if (ending.kind !== 'released') this.#tellErrorHandler(run, ending.error ?? error);
    return this.#write(run, ending);
  }

  async #write(run: TaskRun, ending: Ending): Promise<TaskRun> {
    const { broker } = this.#options;
    const endedAtMs = broker.clock.now();
    try {
      await writeEnding(broker, run, ending);
    } catch (error) {
      this.#notWritten(run, ending, endedAtMs, error);
      return run;
    }
    this.#tellWritten(run, ending, endedAtMs);
    return run;
  }

  #tellWritten(run: TaskRun, ending: Ending, endedAtMs: number): void {
    const { logger } = this.#options;
    if (ending.kind === 'archived') logger.warn(fieldsOf(run, ending.error), 'task archived');
    if (ending.kind === 'lost') logger.warn(fieldsOf(run, ending.error), 'lease of a task lost');
    this.#reports.over(run, ending, endedAtMs);
  }

  /** Somebody else has the task, or the broker could not be reached: then it is tried again while the task is ours. */
  #notWritten(run: TaskRun, ending: Ending, endedAtMs: number, error: unknown): void {
    const { broker, logger, leaseUntilMs } = this.#options;
    const code = codeOf(error);
    logger.warn(fieldsOf(run, error), `task not ${ending.kind}`);
    const lose = (reason: unknown): void => {
      this.#reports.over(run, { kind: 'lost', error: reason }, endedAtMs);
    };
    if (code === 'ERR_LEASE_LOST' || code === 'ERR_BROKER_CLOSED') {
      lose(error);
      return;
    }
    this.#syncer.add({
      untilMs: leaseUntilMs(run),
      write: () => writeEnding(broker, run, ending),
      written: () => {
        this.#tellWritten(run, ending, endedAtMs);
      },
      lost: lose,
    });
  }

  #tellErrorHandler(run: TaskRun, error: unknown): void {
    const { errorHandler } = this.#options;
    if (errorHandler === undefined) return;
    try {
      errorHandler(error, run.task, run.context);
    } catch (thrown) {
      reportUncaught(thrown);
    }
  }
}

function fieldsOf({ leased }: TaskRun, error: unknown): object {
  const { id, queue, type } = leased.message;
  return { taskId: id, queue, type, err: error };
}
