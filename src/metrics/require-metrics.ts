import { requireMethods } from '../core/validate.ts';
import type { MetricsProvider } from './provider.ts';

const METHODS: readonly (keyof MetricsProvider)[] = ['counter', 'observableGauge', 'histogram'];

/** Metrics are optional everywhere. */
export function requireMetrics(value: unknown): void {
  if (value !== undefined) requireMethods('metrics', 'a MetricsProvider', METHODS, value);
}
