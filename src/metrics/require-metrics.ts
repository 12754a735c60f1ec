import { requireMethods } from '../core/validate.ts';
import type { MetricsProvider } from './provider.ts';

const METHODS: readonly (keyof MetricsProvider)[] = ['counter', 'observableGauge', 'histogram'];

export function requireMetrics(argument: string, value: unknown): void {
  requireMethods(argument, 'a MetricsProvider', METHODS, value);
}
