/**
 * The few statistics a benchmark table needs. Medians, not means: one descheduled round must not move a result.
 */

/** A median with the range it was seen in. */
export interface Summary {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** Median distance from the median: the noise without its outliers. */
  readonly mad: number;
}

/** The middle value, or the mean of the two in the middle. `NaN` without samples. */
export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** Linear interpolation between the closest ranks; `fraction` 0 is the smallest, 1 the largest. */
export function quantile(samples: readonly number[], fraction: number): number {
  return quantileOfSorted(Float64Array.from(samples).sort(), fraction);
}

/** As `quantile`, for samples that are in ascending order already: a scenario sorts a hundred thousand once. */
export function quantileOfSorted(sorted: ArrayLike<number>, fraction: number): number {
  const rank = (sorted.length - 1) * fraction;
  const below = sorted[Math.floor(rank)];
  const above = sorted[Math.ceil(rank)];
  if (below === undefined || above === undefined) return Number.NaN;
  return below + (above - below) * (rank - Math.floor(rank));
}

export function summarize(samples: readonly number[]): Summary {
  const middle = median(samples);
  return {
    median: middle,
    min: Math.min(...samples),
    max: Math.max(...samples),
    mad: median(samples.map((sample) => Math.abs(sample - middle))),
  };
}

/**
 * `numerators[i] / denominators[i]`, round by round. Contestants of a round ran within seconds of each other, so
 * what the machine did to one it did to the other: the median of these is steadier than a ratio of medians.
 */
export function pairedRatios(numerators: readonly number[], denominators: readonly number[]): number[] {
  return paired(numerators, denominators, (numerator, denominator) => numerator / denominator);
}

/** `minuends[i] - subtrahends[i]`, round by round, for the same reason. */
export function pairedDifferences(minuends: readonly number[], subtrahends: readonly number[]): number[] {
  return paired(minuends, subtrahends, (minuend, subtrahend) => minuend - subtrahend);
}

function paired(
  left: readonly number[],
  right: readonly number[],
  combine: (left: number, right: number) => number,
): number[] {
  const length = Math.min(left.length, right.length);
  return Array.from({ length }, (_, round) => combine(left[round] ?? Number.NaN, right[round] ?? Number.NaN));
}
