import { propagation, trace, type TextMapPropagator, type Tracer } from '@opentelemetry/api';
import { objectWith, readOptions, type OptionTable } from '../../core/options.ts';
import { requireBoolean } from '../../core/validate.ts';
import type { ClientMiddleware } from '../client.ts';
import { requireText } from '../require-text.ts';
import type { Middleware } from '../server/handler.ts';
import { enqueueSpans, processSpans } from './spans.ts';

/** Options of {@link openTelemetryTracing}. */
export interface OpenTelemetryTracingOptions {
  /**
   * Creates the spans.
   *
   * @default the global tracer provider's tracer `escapement`, looked up for every span
   */
  readonly tracer?: Tracer | undefined;
  /**
   * Writes the context into the headers of a task, and reads it from them.
   *
   * @default the global one: W3C's `traceparent`, `tracestate` and `baggage`, if the SDK was set up as usual
   */
  readonly propagator?: TextMapPropagator | undefined;
  /**
   * Value of `messaging.system`: `'asynq'`, for example, if asynq uses the same tasks.
   *
   * @default 'escapement'
   */
  readonly system?: string | undefined;
  /**
   * Whether every run begins a trace of its own, which only links to the span that enqueued the task: for tasks that wait for days, or
   * run again and again.
   *
   * @default false: a run belongs to the trace in which the task was enqueued
   */
  readonly newTrace?: boolean | undefined;
}

const OPTIONS = {
  tracer: [objectWith('a Tracer of @opentelemetry/api', 'startSpan'), undefined],
  propagator: [
    objectWith('a TextMapPropagator of @opentelemetry/api', 'inject', 'extract', 'fields'),
    propagation,
  ],
  system: [requireText, 'escapement'],
  newTrace: [requireBoolean, false],
} satisfies OptionTable<OpenTelemetryTracingOptions>;

const TRACER_NAME = 'escapement';

/** Middleware for both ends of a queue. */
export interface TaskTracing {
  /** Middleware for `client.use`. With it, `enqueueMany` sends each task on its own. */
  readonly enqueue: ClientMiddleware;
  /** Middleware for `mux.use`. */
  readonly process: Middleware;
}

/**
 * Creates spans for tasks, by OpenTelemetry's conventions for messaging:
 *
 * - `enqueue TYPE`, of kind producer, around `enqueue`. Its context travels in the headers of the task.
 * - `process TYPE`, of kind consumer, around each run. It links to the span of `enqueue`, as the conventions require, and is its
 *   child, as they allow for runs of one task: one trace shows the request, the wait, and every retry. With `newTrace` it only links.
 *
 * The names have the type, where the conventions have the queue, which is in `messaging.destination.name`. Spans that a handler
 * creates are inside the span of the run. A failed run has the error; a revoked one, `escapement.task.revoked`. A task without such
 * headers, for example of a scheduler or an aggregator, begins a trace.
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
  const { tracer, ...settings } = readOptions('openTelemetryTracing', options, OPTIONS);
  const findTracer = (): Tracer => tracer ?? trace.getTracer(TRACER_NAME);
  return { enqueue: enqueueSpans(findTracer, settings), process: processSpans(findTracer, settings) };
}
