import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type TextMapPropagator,
  type Tracer,
} from '@opentelemetry/api';
import { guarded } from '../../core/report-uncaught.ts';
import { isThenable } from '../../core/thenable.ts';
import type { ClientMiddleware, EnqueueRequest } from '../client.ts';
import { errorText, RevokeTask } from '../handler-errors.ts';
import type { Middleware, ReceivedTask, TaskContext } from '../server/handler.ts';
import { DEFAULT_QUEUE } from '../task-options.ts';
import { contextOf, headersOf } from './task-headers.ts';

/** Names of attributes: OpenTelemetry's conventions for messaging, 1.27 and later, and names of this package for the rest. */
const ATTRIBUTE = {
  system: 'messaging.system',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  /** The queue. */
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

interface SpanSettings {
  readonly propagator: TextMapPropagator;
  readonly system: string;
  readonly newTrace: boolean;
}

/** Wraps every `enqueue` in a span, whose context the task carries. */
export function enqueueSpans(tracer: () => Tracer, { propagator, system }: SpanSettings): ClientMiddleware {
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
export function processSpans(tracer: () => Tracer, settings: SpanSettings): Middleware {
  return (next) => (task, run) => {
    // Not from the active context, which is the one in which the server was started.
    const carried = contextOf(ROOT_CONTEXT, settings.propagator, task.headers);
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

/** Records an error. A thrown value may throw again when its properties are read: the span is kept all the same. */
function recordError(span: Span, error: unknown): void {
  const text = errorText(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: text });
  guarded(() => {
    span.setAttribute(ATTRIBUTE.errorType, typeOf(error));
    span.recordException(error instanceof Error ? error : text);
  });
}

/** Returns the code of an error, else its class: there are few of both. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return OTHER;
  const { code, name } = error as { code?: unknown; name: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' && name !== '' ? name : OTHER;
}
