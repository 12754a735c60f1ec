import { DelayedOperationPurgatory, ManualClock, SystemTimer, type MetricsProvider } from 'escapement';
import { TestOperation } from '../purgatory/support/fixture.ts';

/** A timer and a purgatory after a little work, and what is still in them: 2 tasks; 2 operations with 3 watch entries. */
export function measured(metrics: MetricsProvider): { close: () => void } {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, metrics, name: 'requests' });
  for (const delayMs of [10, 20, 100, 200]) timer.schedule(delayMs, () => undefined, 0);
  const purgatory = new DelayedOperationPurgatory<string>('fetch', { timer, clock, metrics });
  purgatory.tryCompleteElseWatch(new TestOperation('a', { delayMs: 40 }), ['a']);
  clock.advance(50);
  purgatory.tryCompleteElseWatch(new TestOperation('a', { delayMs: 1_000 }), ['a', 'b']);
  purgatory.tryCompleteElseWatch(new TestOperation('a', { delayMs: Infinity }), ['b']);
  purgatory.checkAndComplete('b');
  return {
    close: () => {
      purgatory.close();
      timer.close();
    },
  };
}

const nothing = (): void => undefined;

/** Measures nothing. */
export const noopMetrics: MetricsProvider = {
  counter: () => ({ inc: nothing }),
  gauge: () => ({ set: nothing }),
  observableGauge: () => ({ remove: nothing }),
  histogram: () => ({ observe: nothing }),
};
