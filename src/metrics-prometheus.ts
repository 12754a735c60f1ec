/**
 * Metrics for Prometheus. Needs `prom-client`.
 *
 * @module escapement/metrics/prometheus
 */
export { prometheusMetrics } from './metrics/prometheus.ts';
export type { PrometheusMetricsOptions } from './metrics/prometheus.ts';
export type { MetricsAdapterOptions } from './metrics/adapter-options.ts';
