import { propagation, trace, type TextMapPropagator, type Tracer } from '@opentelemetry/api';
import { wrongType } from '../../core/errors.ts';
import { requireMethods, requireOptions, type OptionNames } from '../../core/validate.ts';
import { requireText } from '../require-text.ts';

/** Options of {@link openTelemetryTracing}. */
export interface OpenTelemetryTracingOptions {
  /**
   * What makes the spans.
   *
   * @default the global tracer provider's tracer `escapement`, looked up for every span
   */
  readonly tracer?: Tracer | undefined;
  /**
   * What writes the context into the headers of a task, and reads it from them.
   *
   * @default the global one: W3C's `traceparent`, `tracestate` and `baggage`, if the SDK was set up as usual
   */
  readonly propagator?: TextMapPropagator | undefined;
  /**
   * What `messaging.system` says: `'asynq'` where the tasks are also Go's, say.
   *
   * @default 'escapement'
   */
  readonly system?: string | undefined;
  /**
   * Whether every run begins a trace of its own, which only links to where the task was enqueued: for tasks that wait for
   * days, or run again and again.
   *
   * @default false: a run belongs to the trace of who has enqueued the task
   */
  readonly newTrace?: boolean | undefined;
}

const OPTIONS: OptionNames<OpenTelemetryTracingOptions> = {
  ...{ tracer: true, propagator: true, system: true, newTrace: true },
};

/** All of them, made definite. */
export interface TracingSettings {
  readonly tracer: () => Tracer;
  readonly propagator: TextMapPropagator;
  readonly system: string;
  readonly newTrace: boolean;
}

const TRACER_NAME = 'escapement';
const TRACER_METHODS: readonly (keyof Tracer)[] = ['startSpan'];
const PROPAGATOR_METHODS: readonly (keyof TextMapPropagator)[] = ['inject', 'extract', 'fields'];

/** @throws TypeError - an option is wrong. */
export function resolveTracingOptions(options: OpenTelemetryTracingOptions): TracingSettings {
  requireOptions('openTelemetryTracing', options, OPTIONS);
  const { tracer, propagator = propagation, system = 'escapement', newTrace = false } = options;
  if (tracer !== undefined) {
    requireMethods('options.tracer', 'a Tracer of @opentelemetry/api', TRACER_METHODS, tracer);
  }
  requireMethods(
    'options.propagator',
    'a TextMapPropagator of @opentelemetry/api',
    PROPAGATOR_METHODS,
    propagator,
  );
  requireText('options.system', system);
  if (typeof newTrace !== 'boolean') throw wrongType('options.newTrace', 'a boolean', newTrace);
  return {
    tracer: tracer === undefined ? () => trace.getTracer(TRACER_NAME) : () => tracer,
    propagator,
    system,
    newTrace,
  };
}
