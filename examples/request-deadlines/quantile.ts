/** The value that a share `q` (0 … 1) of the ascending `sorted` does not exceed (nearest rank); NaN if empty. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  const rank = Math.ceil(q * sorted.length);
  return sorted[Math.max(rank, 1) - 1] ?? NaN;
}

/** A sorted copy, without the string comparison that `Array.prototype.sort` defaults to. */
export function ascending(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort();
}
