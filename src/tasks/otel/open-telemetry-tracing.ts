import type { ClientMiddleware } from '../client.ts';
import type { Middleware } from '../server/handler.ts';
import { enqueueSpans } from './enqueue-spans.ts';
import { processSpans } from './process-spans.ts';
import { resolveTracingOptions, type OpenTelemetryTracingOptions } from './tracing-options.ts';

/** Middleware for both ends of a queue. */
export interface TaskTracing {
  /** For `client.use`. With it, `enqueueMany` sends each task for itself. */
  readonly enqueue: ClientMiddleware;
  /** For `mux.use`. */
  readonly process: Middleware;
}

/**
 * Spans for tasks, by OpenTelemetry's conventions for messaging:
 *
 * - `enqueue TYPE`, of kind producer, around `enqueue`. Its context travels in the headers of the task.
 * - `process TYPE`, of kind consumer, around each run. It links to the span of `enqueue`, as the conventions ask for, and
 *   is its child, as they allow where a run has one task: one trace shows the request, the waiting, and every retry. With
 *   `newTrace` it only links.
 *
 * The names have the type, where the conventions have the queue: that is in `messaging.destination.name`. What a handler
 * does is inside of its span. A failed run has the error; a revoked one, `escapement.task.revoked`. A task without such
 * headers, one that a scheduler or an aggregator has made for instance, begins a trace.
 *
 * @throws TypeError - an option is wrong.
 *
 * @example
 * ```ts
 * const tracing = openTelemetryTracing();
 * client.use(tracing.enqueue);
 * mux.use(tracing.process);
 * ```
 */
export function openTelemetryTracing(options: OpenTelemetryTracingOptions = {}): TaskTracing {
  const settings = resolveTracingOptions(options);
  return { enqueue: enqueueSpans(settings), process: processSpans(settings) };
}
