/** Metrics for OpenTelemetry. Needs `@opentelemetry/api`. */
export { openTelemetryMetrics } from './metrics/otel.ts';
export type { OpenTelemetryMetricsOptions } from './metrics/otel.ts';
export type { MetricsAdapterOptions } from './metrics/adapter-options.ts';
