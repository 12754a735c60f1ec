import { expect, it } from 'vitest';
import { ManualClock, SystemTimer, type MetricsProvider } from 'escapement';

/** Records what is measured, by name. */
class RecordingMetrics implements MetricsProvider {
  readonly values = new Map<string, number>();
  readonly labels = new Map<string, Record<string, string> | undefined>();
  readonly readers = new Map<string, () => number>();

  counter(name: string, _help: string, labels?: Record<string, string>): { inc(by?: number): void } {
    this.labels.set(name, labels);
    return { inc: (by = 1) => this.values.set(name, (this.values.get(name) ?? 0) + by) };
  }

  gauge(name: string): { set(value: number): void } {
    return { set: (value) => this.values.set(name, value) };
  }

  observableGauge(name: string, _help: string, read: () => number): { remove(): void } {
    this.readers.set(name, read);
    return { remove: () => this.readers.delete(name) };
  }

  histogram(name: string): { observe(value: number): void } {
    return { observe: (value) => this.values.set(name, value) };
  }
}

it('a provider reads the size of a timer, and counts its wake-ups and tasks by its name', () => {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, metrics, name: 'requests' });
  for (const delayMs of [10, 10, 20, 30]) timer.schedule(delayMs, () => undefined, 0);
  expect(metrics.readers.get('timer_size')?.()).toBe(4);
  clock.advance(20);
  expect(metrics.readers.get('timer_size')?.()).toBe(1);
  expect(metrics.values.get('timer_wakeups_total')).toBe(2);
  expect(metrics.values.get('timer_tasks_run_total')).toBe(3);
  expect(metrics.labels.get('timer_wakeups_total')).toEqual({ timer: 'requests' });
});

it('a timer that is closed removes its gauge', () => {
  const metrics = new RecordingMetrics();
  new SystemTimer({ clock: new ManualClock(), metrics }).close();
  expect(metrics.readers.size).toBe(0);
});
