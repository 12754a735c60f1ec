/** Spans of OpenTelemetry for tasks. Needs `@opentelemetry/api`. */
export { openTelemetryTracing } from './tasks/otel/open-telemetry-tracing.ts';
export type { OpenTelemetryTracingOptions, TaskTracing } from './tasks/otel/open-telemetry-tracing.ts';
