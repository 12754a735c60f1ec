import { context, SpanKind, trace, type Attributes, type Span } from '@opentelemetry/api';
import type { ClientMiddleware, EnqueueRequest } from '../client.ts';
import { DEFAULT_QUEUE } from '../task-options.ts';
import { ATTRIBUTE } from './span-attributes.ts';
import { recordError } from './span-error.ts';
import { headersOf } from './task-headers.ts';
import type { TracingSettings } from './tracing-options.ts';

/** A span around every `enqueue`, whose context the task carries. */
export function enqueueSpans(settings: TracingSettings): ClientMiddleware {
  return async (request, next) => {
    const { task, options } = request;
    const span = startSpan(request, settings);
    const active = trace.setSpan(context.active(), span);
    try {
      const carried = headersOf(active, settings.propagator, { ...task.headers, ...options.headers });
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

/** What is known before it is enqueued is there for whoever samples. */
function startSpan({ task, options }: EnqueueRequest, { tracer, system }: TracingSettings): Span {
  const attributes: Attributes = {
    [ATTRIBUTE.system]: system,
    [ATTRIBUTE.operationName]: 'enqueue',
    [ATTRIBUTE.operationType]: 'send',
    [ATTRIBUTE.destination]: options.queue ?? task.options.queue ?? DEFAULT_QUEUE,
    [ATTRIBUTE.taskType]: task.type,
  };
  const id = options.taskId ?? task.options.taskId;
  if (id !== undefined) attributes[ATTRIBUTE.messageId] = id;
  return tracer().startSpan(`enqueue ${task.type}`, { kind: SpanKind.PRODUCER, attributes });
}
