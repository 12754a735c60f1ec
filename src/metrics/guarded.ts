import { readClock, type Clock } from '../core/clock.ts';
import { reportUncaught } from '../core/report-uncaught.ts';

const MS_PER_S = 1_000;

/** Measures; a provider that throws must not stop what is measured. */
export function guarded(measure: () => void): void {
  try {
    measure();
  } catch (error) {
    reportUncaught(error);
  }
}

/** The time for a measurement: `NaN` from a clock that is wrong, which must not stop what is measured either. */
export function measuredNow(clock: Clock): number {
  try {
    return readClock(clock);
  } catch {
    return NaN;
  }
}

/** Observes a duration in seconds, unless the clock was wrong at one end of it. */
export function observeDuration(histogram: { observe(value: number): void }, durationMs: number): void {
  if (Number.isNaN(durationMs)) return;
  guarded(() => {
    histogram.observe(durationMs / MS_PER_S);
  });
}
