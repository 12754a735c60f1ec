/** The distribution of latencies, given by two of its percentiles as Kafka's harness takes them. */
import type { SeededRandom } from './seeded-random.ts';

/** The 75th percentile of the standard normal distribution; the digits are Kafka's. */
const NORMAL_75TH = 0.67449;

export class LogNormal {
  /** Mean and standard deviation of the logarithm. */
  readonly mu: number;
  readonly sigma: number;

  constructor(pct50: number, pct75: number) {
    this.mu = Math.log(pct50);
    this.sigma = (Math.log(pct75) - this.mu) / NORMAL_75TH;
  }

  draw(random: SeededRandom): number {
    return Math.exp(random.nextGaussian() * this.sigma + this.mu);
  }

  /** The share of values that are `bound` or more. */
  shareFrom(bound: number): number {
    if (bound <= 0) return 1;
    return 1 - normalBelow((Math.log(bound) - this.mu) / this.sigma);
  }
}

/** The share of a standard normal distribution below `x`. Abramowitz and Stegun 26.2.17: wrong by 7.5e-8 at most. */
function normalBelow(x: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  const polynomial =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return x >= 0 ? 1 - density * polynomial : density * polynomial;
}
