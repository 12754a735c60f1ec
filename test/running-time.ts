/**
 * Starts to measure the time in which this process has its turns: no matter how long the machine stops, only a tenth of a second of that
 * counts. It uses only globals, so that a program that runs in another process can contain its source.
 *
 * @returns what ends the measurement. It returns the milliseconds.
 */
export function measureRunningTime(): () => number {
  let [ranMs, lastMs] = [0, performance.now()];
  const tick = (): void => {
    const nowMs = performance.now();
    ranMs += Math.min(nowMs - lastMs, 100);
    lastMs = nowMs;
  };
  const ticks = setInterval(tick, 20).unref();
  return () => {
    tick();
    clearInterval(ticks);
    return ranMs;
  };
}
