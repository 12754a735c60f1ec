import {
  context,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
  type Span,
  type TextMapPropagator,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { EscapementError } from 'escapement';
import { RevokeTask, ServeMux, SkipRetry, Task, type Handler } from 'escapement/tasks';
import { openTelemetryTracing, type OpenTelemetryTracingOptions } from 'escapement/tasks/otel';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { uncaughtErrors } from '../../uncaught-errors.ts';
import { raise, unreadable } from '../support/bench.ts';
import { openWorld, type World } from '../server/support/world.ts';

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

let world: World;

beforeEach(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  trace.setGlobalTracerProvider(provider);
  world = await openWorld();
});

afterEach(() => {
  exporter.reset();
  trace.disable();
  propagation.disable();
  context.disable();
});

/** A world with tracing at both ends, whose server runs. */
async function traced(handler: Handler, options?: OpenTelemetryTracingOptions): Promise<void> {
  const tracing = openTelemetryTracing(options);
  world.client.use(tracing.enqueue);
  await world.server().start(new ServeMux().use(tracing.process).handle('work', handler));
}

async function run(task: Task = new Task('work', { n: 1 }, { taskId: 'one' })): Promise<void> {
  await world.client.enqueue(task);
  await world.clock.advanceAsync(1);
}

function spansNamed(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

function theSpan(name: string): ReadableSpan {
  const [span, ...others] = spansNamed(name);
  if (span === undefined || others.length > 0) throw new Error(`${others.length + 1} spans '${name}'`);
  return span;
}

/** Runs something inside a span, which is over when that is. */
async function inside(name: string, work: (span: Span) => Promise<void>): Promise<void> {
  await trace.getTracer('test').startActiveSpan(name, async (span) => {
    await work(span);
    span.end();
  });
}

describe('a task that is enqueued', () => {
  it('an enqueued task has a producer span with the attributes of the conventions', async () => {
    await traced(() => undefined);
    await world.client.enqueue(new Task('work', undefined, { queue: 'default' }), { taskId: 'one' });
    const span = theSpan('enqueue work');
    expect(span.kind).toBe(SpanKind.PRODUCER);
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.attributes).toEqual({
      'messaging.system': 'escapement',
      'messaging.operation.name': 'enqueue',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'default',
      'messaging.message.id': 'one',
      'escapement.task.type': 'work',
    });
  });

  it('the producer span has the id that the task was given', async () => {
    await traced(() => undefined);
    const { id } = await world.client.enqueue(new Task('work'));
    expect(theSpan('enqueue work').attributes['messaging.message.id']).toBe(id);
  });

  it('the producer span begins with the id and the queue that are known, and ends with those of the task', async () => {
    const tracer = trace.getTracer('test');
    const startSpan = vi.spyOn(tracer, 'startSpan');
    await traced(() => undefined, { tracer });
    world.client.use((request, next) =>
      next({ ...request, options: { ...request.options, queue: 'moved' } }),
    );
    await world.client.enqueue(new Task('work', 1, { taskId: 'one', queue: 'own' }), { queue: 'low' });
    const known = { 'messaging.message.id': 'one', 'messaging.destination.name': 'low' };
    expect(startSpan.mock.calls[0]?.[1]?.attributes).toMatchObject(known);
    expect(theSpan('enqueue work').attributes['messaging.destination.name']).toBe('moved');
  });

  it('the producer span is a child of the active span', async () => {
    await traced(() => undefined);
    await inside('request', () => run());
    expect(theSpan('enqueue work').parentSpanContext?.spanId).toBe(theSpan('request').spanContext().spanId);
  });

  it('a task carries the context beside its own headers', async () => {
    await traced(() => undefined);
    const task = new Task('work', undefined, { headers: { a: '1', b: '1' } });
    const { headers } = await world.client.enqueue(task, { headers: { b: '2' } });
    const { traceId, spanId } = theSpan('enqueue work').spanContext();
    expect(headers).toEqual({ a: '1', b: '2', traceparent: `00-${traceId}-${spanId}-01` });
  });

  it('a refused task has a span with the error, which enqueue rejects with', async () => {
    await traced(() => undefined);
    const task = new Task('work', undefined, { taskId: 'twice', processInMs: 1_000 });
    await world.client.enqueue(task);
    await expect(world.client.enqueue(task)).rejects.toMatchObject({ code: 'ERR_TASK_ID_CONFLICT' });
    const [, refused] = spansNamed('enqueue work');
    expect(refused?.status.code).toBe(SpanStatusCode.ERROR);
    expect(refused?.attributes['error.type']).toBe('ERR_TASK_ID_CONFLICT');
    expect(refused?.events.map(({ name }) => name)).toEqual(['exception']);
  });

  it('each task of enqueueMany has its own span', async () => {
    await traced(() => undefined);
    await inside('request', async () => {
      await world.client.enqueueMany([new Task('work'), new Task('work')]);
    });
    await world.clock.advanceAsync(1);
    const parents = spansNamed('process work').map(({ parentSpanContext }) => parentSpanContext?.spanId);
    expect(parents).toEqual(spansNamed('enqueue work').map((span) => span.spanContext().spanId));
    expect(new Set(parents).size).toBe(2);
  });

  it('a task that is enqueued again loses the headers of another trace', async () => {
    await traced(() => undefined);
    const old = {
      traceparent: '00-11111111111111111111111111111111-2222222222222222-01',
      tracestate: 'vendor=old',
      baggage: 'user=old',
    };
    await run(new Task('work', undefined, { headers: old }));
    const span = theSpan('process work');
    const { links } = span;
    expect(span.spanContext().traceId).toBe(theSpan('enqueue work').spanContext().traceId);
    expect(links[0]?.context.traceState?.serialize() ?? '').toBe('');
    const { headers } = await world.client.enqueue(new Task('work'), { headers: old });
    expect(headers).toMatchObject({ tracestate: '', baggage: '' });
  });

  it('a task that is enqueued again keeps its headers if no context is written', async () => {
    const silent = {
      inject: () => undefined,
      extract: () => context.active(),
      fields: () => ['traceparent'],
    };
    await traced(() => undefined, { propagator: silent });
    const headers = { traceparent: 'of another program' };
    const info = await world.client.enqueue(new Task('work', undefined, { headers }));
    expect(info.headers).toEqual(headers);
  });

  it('a context that cannot be written does not stop enqueue', async () => {
    const uncaught = uncaughtErrors();
    const inject = raise(new Error('cannot be written'));
    const extract = raise(new Error('cannot be read'));
    const broken: TextMapPropagator = { inject, extract, fields: () => [] };
    const handler = vi.fn();
    await traced(handler, { propagator: broken });
    await run();
    expect(handler).toHaveBeenCalledTimes(1);
    await expect.poll(() => uncaught).toHaveLength(2);
  });
});

describe('a run', () => {
  it('a run has a consumer span that is a child of the producer span and links to it', async () => {
    await traced(() => undefined);
    await run();
    const producer = theSpan('enqueue work').spanContext();
    const span = theSpan('process work');
    expect(span.kind).toBe(SpanKind.CONSUMER);
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.parentSpanContext).toMatchObject({ spanId: producer.spanId, isRemote: true });
    expect(span.links.map((link) => link.context.spanId)).toEqual([producer.spanId]);
    expect(span.attributes).toEqual({
      'messaging.system': 'escapement',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'default',
      'messaging.message.id': 'one',
      'escapement.task.type': 'work',
      'escapement.task.retry_count': 0,
      'escapement.task.max_retry': 25,
    });
  });

  it('with newTrace a run begins a trace and links to the producer span', async () => {
    await traced(() => undefined, { newTrace: true });
    await run();
    const producer = theSpan('enqueue work').spanContext();
    const span = theSpan('process work');
    expect(span.parentSpanContext).toBeUndefined();
    expect(span.spanContext().traceId).not.toBe(producer.traceId);
    expect(span.links.map((link) => link.context.traceId)).toEqual([producer.traceId]);
  });

  it('a run begins a trace if the task carries none, whatever was active when the server was started', async () => {
    const mux = new ServeMux().use(openTelemetryTracing().process).handle('work', () => undefined);
    await inside('start', () => world.server().start(mux));
    await inside('request', () => run());
    const span = theSpan('process work');
    expect(span.parentSpanContext).toBeUndefined();
    expect(span.links).toEqual([]);
  });

  it('the span of a run is active in its handler, also after an await, with the baggage of the producer', async () => {
    const seen: (string | undefined)[] = [];
    await traced(async () => {
      await Promise.resolve();
      seen.push(propagation.getActiveBaggage()?.getEntry('user')?.value);
      await inside('query', () => Promise.resolve());
    });
    const baggage = propagation.createBaggage({ user: { value: '42' } });
    await context.with(propagation.setBaggage(context.active(), baggage), () => run());
    expect(seen).toEqual(['42']);
    expect(theSpan('query').parentSpanContext?.spanId).toBe(theSpan('process work').spanContext().spanId);
  });

  it('tasks that a handler enqueues carry the context of its run', async () => {
    await traced(async (task) => {
      if (task.json<number>() > 0) await world.client.enqueue(new Task('work', task.json<number>() - 1));
    });
    await run(new Task('work', 1));
    const [outer, inner] = spansNamed('enqueue work');
    const around = spansNamed('process work').find(
      (span) => span.spanContext().spanId === inner?.parentSpanContext?.spanId,
    );
    expect(around?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId);
  });

  it.each<[string, Handler]>([
    ['throws', raise(new TypeError('no such user'))],
    ['rejects', () => Promise.reject(new TypeError('no such user'))],
  ])('a run whose handler %s has the error, and its task is retried as usual', async (_, handler) => {
    await traced(handler);
    await run();
    const failed = theSpan('process work');
    expect(failed.status).toEqual({ code: SpanStatusCode.ERROR, message: 'no such user' });
    expect(failed.attributes['error.type']).toBe('TypeError');
    expect(failed.events[0]?.attributes?.['exception.message']).toBe('no such user');
    await world.clock.advanceAsync(1_000);
    const [, again] = spansNamed('process work');
    expect(again?.attributes['escapement.task.retry_count']).toBe(1);
    expect(again?.parentSpanContext?.spanId).toBe(theSpan('enqueue work').spanContext().spanId);
  });

  it.each([
    ['an error with a code', new EscapementError('ERR_TASK_TIMEOUT', 'late'), 'ERR_TASK_TIMEOUT', 'late'],
    ['no error', 'just a word', '_OTHER', 'just a word'],
    ['nothing', undefined, '_OTHER', 'thrown: undefined'],
    ['an error whose properties throw', unreadable(), '_OTHER', 'unknown error: it cannot be read'],
  ])('a run that throws %s has the type and message of the error', async (_, thrown, type, message) => {
    await traced(raise(thrown));
    await run();
    const span = theSpan('process work');
    expect(span.status.message).toBe(message);
    expect(span.attributes['error.type']).toBe(type);
  });

  it('a run of a revoked task has not failed', async () => {
    await traced(raise(new SkipRetry('not wanted', { cause: new RevokeTask() })));
    await run();
    const span = theSpan('process work');
    expect(span.status.code).toBe(SpanStatusCode.UNSET);
    expect(span.attributes['escapement.task.revoked']).toBe(true);
  });

  it('a run without a handler has the error', async () => {
    await traced(() => undefined);
    await run(new Task('other'));
    expect(theSpan('process other').attributes['error.type']).toBe('ERR_HANDLER_NOT_FOUND');
  });
});

it('without an SDK tasks are not changed', async () => {
  trace.disable();
  propagation.disable();
  const handler = vi.fn<Handler>();
  await traced(handler);
  await run(new Task('work', 1, { headers: { a: '1' } }));
  expect(handler.mock.calls[0]?.[0].headers).toEqual({ a: '1' });
});

it('options set the system and the tracer', async () => {
  const mine = new InMemorySpanExporter();
  const own = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(mine)] });
  await traced(() => undefined, { tracer: own.getTracer('mine'), system: 'asynq' });
  await run();
  expect(exporter.getFinishedSpans()).toEqual([]);
  expect(mine.getFinishedSpans().map(({ attributes }) => attributes['messaging.system'])).toEqual([
    'asynq',
    'asynq',
  ]);
});

it.each([
  [{ tracer: {} }, 'tracer'],
  [{ propagator: { inject: () => undefined } }, 'propagator'],
  [{ system: '' }, 'system'],
  [{ newTrace: 1 }, 'newTrace'],
])('the options %o throw a TypeError', (options, name) => {
  expect(() => openTelemetryTracing(options as unknown as OpenTelemetryTracingOptions)).toThrow(
    `options.${name}`,
  );
});
