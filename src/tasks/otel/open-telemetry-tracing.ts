import {
  type Attributes,
  context,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapPropagator,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { objectWith, readOptions, type OptionTable, type Resolved } from '../../core/options.ts';
import { guarded } from '../../core/report-uncaught.ts';
import { isThenable, requireBoolean } from '../../core/validate.ts';
import { requireText } from '../argument-checks.ts';
import type { ClientMiddleware } from '../client.ts';
import { errorText, type Middleware, type ReceivedTask, RevokeTask, type TaskContext } from '../handler.ts';
import { DEFAULT_QUEUE } from '../task-options.ts';
import type { EnqueueRequest } from '../task.ts';

/** Options of {@link openTelemetryTracing}. */
export interface OpenTelemetryTracingOptions {
  /** Creates the spans. @default the global tracer provider's tracer `escapement`, looked up for every span */
  readonly tracer?: Tracer | undefined;
  /**
   * Writes the context into the headers of a task, and reads it from them.
   *
   * @default the global one: W3C's `traceparent`, `tracestate` and `baggage`, if the SDK was set up as usual
   */
  readonly propagator?: TextMapPropagator | undefined;
  /** Value of `messaging.system`: `'asynq'`, for example, if asynq uses the same tasks. @default 'escapement' */
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

/** Names of attributes: OpenTelemetry's conventions for messaging, 1.27 and later, and names of this package for the rest. */
const ATTRIBUTE = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destination: 'messaging.destination.name',
  messageId: 'messaging.message.id',
  errorType: 'error.type',
  taskType: 'escapement.task.type',
  /** Number of failures before this run. */
  retryCount: 'escapement.task.retry_count',
  maxRetry: 'escapement.task.max_retry',
  /** Whether the handler has thrown RevokeTask. */
  isRevoked: 'escapement.task.revoked',
} as const;

type SpanSettings = Omit<Resolved<OpenTelemetryTracingOptions, typeof OPTIONS>, 'tracer'>;

function enqueueSpans(tracer: () => Tracer, { propagator, system }: SpanSettings): ClientMiddleware {
  return async (request, next) => {
    const { task, options } = request;
    const attributes = enqueueAttributes(request, system);
    const span = tracer().startSpan(`enqueue ${task.type}`, { kind: SpanKind.PRODUCER, attributes });
    const active = trace.setSpan(context.active(), span);
    try {
      const carried = headersOf(active, propagator, { ...task.headers, ...options.headers });
      const headers = { ...options.headers, ...carried };
      const info = await context.with(active, next, undefined, { task, options: { ...options, headers } });
      span.setAttribute(ATTRIBUTE.messageId, info.id);
      span.setAttribute(ATTRIBUTE.destination, info.queue);
      return info;
    } catch (error) {
      recordError(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
}

/** Returns the attributes that are known before the task is enqueued, so that a sampler can use them. */
function enqueueAttributes({ task, options }: EnqueueRequest, system: string): Attributes {
  const id = options.taskId ?? task.options.taskId;
  return {
    [ATTRIBUTE.system]: system,
    [ATTRIBUTE.operationName]: 'enqueue',
    [ATTRIBUTE.operationType]: 'send',
    [ATTRIBUTE.destination]: options.queue ?? task.options.queue ?? DEFAULT_QUEUE,
    [ATTRIBUTE.taskType]: task.type,
    ...(id === undefined ? {} : { [ATTRIBUTE.messageId]: id }),
  };
}

/** Wraps every run in a span, in whose context the handler is called. */
function processSpans(tracer: () => Tracer, settings: SpanSettings): Middleware {
  return (next) => (task, run) => {
    const carried = contextOf(settings.propagator, task.headers);
    const options = runOptions(task, run, carried, settings);
    const span = tracer().startSpan(`process ${task.type}`, options, carried);
    let result: unknown;
    try {
      result = context.with(trace.setSpan(carried, span), next, undefined, task, run);
    } catch (error) {
      endWith(span, error);
      throw error;
    }
    if (isThenable(result)) return endAfter(span, result);
    span.end();
    return result;
  };
}

/** The span links to the one that enqueued the task, and is its child unless every run begins a trace of its own. */
function runOptions(
  task: ReceivedTask,
  run: TaskContext,
  carried: Context,
  { system, newTrace }: SpanSettings,
): Parameters<Tracer['startSpan']>[1] {
  const creator = trace.getSpanContext(carried);
  return {
    kind: SpanKind.CONSUMER,
    attributes: {
      [ATTRIBUTE.system]: system,
      [ATTRIBUTE.operationName]: 'process',
      [ATTRIBUTE.operationType]: 'process',
      [ATTRIBUTE.destination]: run.queue,
      [ATTRIBUTE.messageId]: run.taskId,
      [ATTRIBUTE.taskType]: task.type,
      [ATTRIBUTE.retryCount]: run.retryCount,
      [ATTRIBUTE.maxRetry]: run.maxRetry,
    },
    links: creator !== undefined && isSpanContextValid(creator) ? [{ context: creator }] : [],
    root: newTrace,
  };
}

async function endAfter(span: Span, result: PromiseLike<unknown>): Promise<unknown> {
  try {
    const value = await result;
    span.end();
    return value;
  } catch (error) {
    endWith(span, error);
    throw error;
  }
}

/** A task that is revoked has not failed. */
function endWith(span: Span, error: unknown): void {
  if (RevokeTask.is(error)) span.setAttribute(ATTRIBUTE.isRevoked, true);
  else recordError(span, error);
  span.end();
}

/** The conventions' type of an error without a class. */
const OTHER = '_OTHER';

/** Records an error; only its text if it throws again when its properties are read. */
function recordError(span: Span, error: unknown): void {
  const text = errorText(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: text });
  try {
    span.setAttribute(ATTRIBUTE.errorType, typeOf(error));
    span.recordException(error instanceof Error ? error : text);
  } catch {
    span.setAttribute(ATTRIBUTE.errorType, OTHER);
    span.recordException(text);
  }
}

/** Returns the code of an error, else its class: there are few of both. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return OTHER;
  const { code, name } = error as { code?: unknown; name: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' && name !== '' ? name : OTHER;
}

type Headers = Readonly<Record<string, string>>;

/**
 * Returns the headers with which a task carries a context; they are added to the headers it has.
 *
 * A task that is enqueued again may have the headers of another trace: those are set to '', since headers can only be overridden. If
 * a context cannot be written, for example its baggage, the task is enqueued without it.
 */
function headersOf(context: Context, propagator: TextMapPropagator, present: Headers): Headers {
  const carrier: Record<string, string> = {};
  guarded(() => {
    propagator.inject(context, carrier, defaultTextMapSetter);
  });
  if (Object.keys(carrier).length === 0) return carrier;
  for (const name of propagator.fields()) if (Object.hasOwn(present, name)) carrier[name] ??= '';
  return carrier;
}

/**
 * Returns the context that a task carries; the root one if there is none, or if it cannot be read. Not the active one, in which the server
 * was started.
 */
function contextOf(propagator: TextMapPropagator, headers: Headers): Context {
  let context = ROOT_CONTEXT;
  guarded(() => {
    context = propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
  });
  return context;
}
