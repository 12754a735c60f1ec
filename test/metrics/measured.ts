import { DelayedOperation, DelayedOperationPurgatory, ManualClock, SystemTimer } from 'escapement';
import type { MetricsProvider } from 'escapement';

class Never extends DelayedOperation {
  override tryComplete(): boolean {
    return false;
  }
  override onComplete(): void {
    // nothing waits for it
  }
  override onExpiration(): void {
    // nor for this
  }
}

/** A timer and a purgatory after a little work, and what is still in them: 2 tasks; 2 operations with 3 watch entries. */
export function measured(metrics: MetricsProvider): { close: () => void } {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, metrics, name: 'requests' });
  for (const delayMs of [10, 20, 100, 200]) timer.schedule(delayMs, () => undefined, 0);
  const purgatory = new DelayedOperationPurgatory<string, Never>('fetch', { timer, clock, metrics });
  purgatory.tryCompleteElseWatch(new Never(40), ['a']);
  clock.advance(50);
  purgatory.tryCompleteElseWatch(new Never(1_000), ['a', 'b']);
  purgatory.tryCompleteElseWatch(new Never(Infinity), ['b']);
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
