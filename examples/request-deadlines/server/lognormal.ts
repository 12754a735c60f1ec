/** A lognormal law: most values near the median, a long tail to the right. Service times look like this. */
export interface Lognormal {
  readonly medianMs: number;
  /** Standard deviation of the logarithm. */
  readonly sigma: number;
}

/** One value of the law. */
export function sampleLognormal(law: Lognormal): number {
  return law.medianMs * Math.exp(law.sigma * sampleGaussian());
}

/** The share of values above `limitMs`: `1 − Φ(ln(limit / median) / σ)`. */
export function shareAbove(law: Lognormal, limitMs: number): number {
  const z = Math.log(limitMs / law.medianMs) / law.sigma;
  return complementaryErrorFunction(z / Math.SQRT2) / 2;
}

/** Box and Muller (1958), one of its two values. */
function sampleGaussian(): number {
  const radius = Math.sqrt(-2 * Math.log(1 - Math.random()));
  return radius * Math.cos(2 * Math.PI * Math.random());
}

/** Abramowitz and Stegun, formula 7.1.26: off by less than 1.5e-7, far below what a run can tell apart. */
function complementaryErrorFunction(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const series =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const tail = series * Math.exp(-x * x);
  return x < 0 ? 2 - tail : tail;
}
