/**
 * OpenTelemetry spans for tasks. Needs `@opentelemetry/api`.
 *
 * @module escapement/tasks/otel
 */
export { openTelemetryTracing } from './tasks/otel/open-telemetry-tracing.ts';
export type { OpenTelemetryTracingOptions, TaskTracing } from './tasks/otel/open-telemetry-tracing.ts';
