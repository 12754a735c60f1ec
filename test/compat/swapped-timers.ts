import * as ours from 'escapement/timers';
import { onTestFinished, vi } from 'vitest';

/** How often a library called us; what it set and did not clear shows in `waiting`. */
export interface SwappedTimers {
  readonly setTimeout: ReturnType<typeof vi.fn>;
  readonly setInterval: ReturnType<typeof vi.fn>;
  /** Timeouts and intervals of ours that the library has not cleared and that have not run. */
  waiting(): number;
}

/** Puts our functions in the place of the global ones for the length of the test, where libraries that know nothing of us find them. */
export function swapTimers(): SwappedTimers {
  const waiting = new Set<unknown>();
  const setTimeout = vi.fn((callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timeout = ours.setTimeout(
      (...given: unknown[]) => {
        waiting.delete(timeout);
        callback(...given);
      },
      ms,
      ...args,
    );
    waiting.add(timeout);
    return timeout;
  });
  const setInterval = vi.fn((callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const interval = ours.setInterval(callback, ms, ...args);
    waiting.add(interval);
    return interval;
  });
  const clear = (timeout: ours.Clearable): void => {
    waiting.delete(timeout);
    ours.clearTimeout(timeout);
  };
  onTestFinished(() => void vi.unstubAllGlobals());
  const swapped = { setTimeout, setInterval, clearTimeout: clear, clearInterval: clear };
  for (const [name, swap] of Object.entries(swapped)) {
    // As ours are marked: the clock below must not arm itself through them.
    vi.stubGlobal(name, Object.assign(swap, { [Symbol.for('escapement.on-clock')]: true }));
  }
  return { setTimeout, setInterval, waiting: () => waiting.size };
}
