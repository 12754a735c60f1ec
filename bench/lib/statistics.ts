/** The statistics of a benchmark table, and how its numbers are written. Medians, so that one slow round moves nothing. */

/** A median with the range it was seen in. */
export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** The middle value, or the mean of the two in the middle. `NaN` without samples. */
export function median(samples: readonly number[]): number {
  return quantileOfSorted(Float64Array.from(samples).sort(), 0.5);
}

/** Interpolates linearly between the closest ranks; `fraction` 0 is the smallest, 1 the largest. */
export function quantileOfSorted(sorted: ArrayLike<number>, fraction: number): number {
  const rank = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(rank)];
  const above = sorted[Math.ceil(rank)];
  if (below === undefined || above === undefined) return Number.NaN;
  return below + (above - below) * (rank - Math.floor(rank));
}

export function summarize(samples: readonly number[]): Summary {
  return { median: median(samples), min: Math.min(...samples), max: Math.max(...samples) };
}

/**
 * Combines two contestants round by round. Contestants of a round run within seconds of each other, so a disturbance
 * hits both: the median of their ratios is steadier than a ratio of medians.
 */
export function paired(
  left: readonly number[],
  right: readonly number[],
  combine: (left: number, right: number) => number,
): number[] {
  return left.slice(0, right.length).map((value, round) => combine(value, right[round] as number));
}

export function ratioOf(numerator: number, denominator: number): number {
  return numerator / denominator;
}

/** Three significant digits, thousands grouped. */
export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '-∞';
  const magnitude = Math.abs(value);
  const digits = Number.isInteger(value) || magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

/** `131 (125–140)`: the median and the range over the rounds, or the only value. */
export function formatSamples(samples: readonly number[]): string {
  if (samples.length === 0) return '–';
  const { median: middle, min, max } = summarize(samples);
  const value = formatNumber(middle);
  const range = `${formatNumber(min)}–${formatNumber(max)}`;
  return samples.length === 1 || range === `${value}–${value}` ? value : `${value} (${range})`;
}
