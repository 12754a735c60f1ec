import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Context,
  type Span,
} from '@opentelemetry/api';
import { isThenable } from '../../core/thenable.ts';
import { RevokeTask } from '../handler-errors.ts';
import type { Middleware } from '../server/handler.ts';
import type { ReceivedTask } from '../server/handler.ts';
import type { TaskContext } from '../server/handler.ts';
import { ATTRIBUTE } from './span-attributes.ts';
import { recordError } from './span-error.ts';
import { contextOf } from './task-headers.ts';
import type { TracingSettings } from './tracing-options.ts';

/** A span around every run, in whose context the handler is called. */
export function processSpans(settings: TracingSettings): Middleware {
  return (next) => (task, run) => {
    // Not from the active context: that is of whoever has started the server.
    const carried = contextOf(ROOT_CONTEXT, settings.propagator, task.headers);
    const span = startSpan(task, run, carried, settings);
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

/** Linked to where the task was enqueued, and a child of that unless every run is to be a trace of its own. */
function startSpan(task: ReceivedTask, run: TaskContext, carried: Context, settings: TracingSettings): Span {
  const creator = trace.getSpanContext(carried);
  const options = {
    kind: SpanKind.CONSUMER,
    attributes: {
      [ATTRIBUTE.system]: settings.system,
      [ATTRIBUTE.operationName]: 'process',
      [ATTRIBUTE.operationType]: 'process',
      [ATTRIBUTE.destination]: run.queue,
      [ATTRIBUTE.messageId]: run.taskId,
      [ATTRIBUTE.taskType]: task.type,
      [ATTRIBUTE.retryCount]: run.retryCount,
      [ATTRIBUTE.maxRetry]: run.maxRetry,
    },
    links: creator !== undefined && isSpanContextValid(creator) ? [{ context: creator }] : [],
    root: settings.newTrace,
  };
  return settings.tracer().startSpan(`process ${task.type}`, options, carried);
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

/** A task that is revoked is as good as done. */
function endWith(span: Span, error: unknown): void {
  if (RevokeTask.is(error)) span.setAttribute(ATTRIBUTE.isRevoked, true);
  else recordError(span, error);
  span.end();
}
