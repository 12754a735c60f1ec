/** A duration as Go writes it: `1h2m3.45s`, `250ms`, `0s`; in steps of 10 ms, as asynqmon rounds it. */
export function goDuration(durationMs: number): string {
  const totalMs = Math.round(durationMs / 10) * 10;
  if (totalMs === 0) return '0s';
  if (totalMs < 1_000) return `${totalMs}ms`;
  const hours = Math.floor(totalMs / 3_600_000);
  const minutes = Math.floor(totalMs / 60_000) % 60;
  const seconds = `${(totalMs % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
