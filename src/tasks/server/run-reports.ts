import type { EventEmitter } from 'node:events';
import { tell } from '../tell.ts';
import type { Ending } from './run-ending.ts';
import type { ServerEvents, TaskEvent, TaskFailedEvent } from './server-events.ts';
import type { ServerMetrics } from './server-metrics.ts';
import type { TaskRun } from './task-run.ts';

/** Tells of runs to whoever listens, and to whatever measures; if nobody does, it costs next to nothing. */
export class RunReports {
  readonly #emitter: EventEmitter<ServerEvents>;
  readonly #metrics: ServerMetrics | undefined;

  constructor(emitter: EventEmitter<ServerEvents>, metrics: ServerMetrics | undefined) {
    this.#emitter = emitter;
    this.#metrics = metrics;
  }

  started(run: TaskRun): void {
    if (this.#emitter.listenerCount('started') > 0) tell(this.#emitter, 'started', eventOf(run));
  }

  /** @param endedAtMs - when its handler had settled, or was given up; on the monotonic clock. */
  over(run: TaskRun, ending: Ending, endedAtMs: number): void {
    if (!run.hasStarted) return;
    const durationMs = endedAtMs - run.startedAtMs;
    this.#metrics?.over(run.leased.message, ending.kind, durationMs);
    if (this.#emitter.listenerCount(ending.kind) === 0) return;
    const over = { ...eventOf(run), durationMs };
    if (ending.kind === 'completed') tell(this.#emitter, 'completed', over);
    else this.#failed({ ...over, error: ending.error }, ending);
  }

  #failed(event: TaskFailedEvent, ending: Exclude<Ending, { kind: 'completed' }>): void {
    switch (ending.kind) {
      case 'retried': {
        const { isFailure, atMs } = ending;
        tell(this.#emitter, 'retried', { ...event, retryAt: new Date(atMs), isFailure });
        return;
      }
      case 'cancelled':
        tell(this.#emitter, 'cancelled', { ...event, outcome: ending.outcome });
        return;
      case 'archived':
      case 'released':
      case 'lost':
        tell(this.#emitter, ending.kind, event);
    }
  }
}

function eventOf({ task, leased }: TaskRun): TaskEvent {
  const { id, queue, type, retried, maxRetry } = leased.message;
  return { task, taskId: id, queue, type, retryCount: retried, maxRetry };
}
