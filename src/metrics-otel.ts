/**
 * Metrics for OpenTelemetry. Needs `@opentelemetry/api`.
 *
 * @module escapement/metrics/otel
 */
export { openTelemetryMetrics } from './metrics/otel.ts';
export type { OpenTelemetryMetricsOptions } from './metrics/otel.ts';
export type { MetricsAdapterOptions } from './metrics/adapter-options.ts';
