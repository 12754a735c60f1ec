import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { readOptions, type OptionTable } from '../core/options.ts';
import { requireFraction, requireFunction } from '../core/validate.ts';
import { cleanDelay, requireLimiter, type RateLimiter } from './rate-limiter.ts';

/** Options of a {@link WithJitterRateLimiter}. */
export interface JitterOptions {
  /**
   * Which part of a delay is left to chance, from 0 to 1: 1 gives anything between nothing and the whole delay
   * ("full jitter"), 0.5 at least half of it ("equal jitter").
   *
   * @default 0.5
   */
  readonly fraction?: number;
  /** From 0 to below 1. @default Math.random */
  readonly random?: () => number;
}

const OPTIONS = {
  fraction: [requireFraction, 0.5],
  random: [requireFunction, Math.random],
} satisfies OptionTable<JitterOptions>;

/**
 * Shortens each delay by chance, so that what failed together is not tried again together.
 *
 * Put it round the limiter of the items, not round a bucket: the slots that a bucket gives are apart already.
 */
export class WithJitterRateLimiter<T> implements RateLimiter<T> {
  readonly #limiter: RateLimiter<T>;
  readonly #fraction: number;
  readonly #random: () => number;

  /** @throws RangeError `ERR_OUT_OF_RANGE` - `fraction` is not from 0 to 1. */
  constructor(limiter: RateLimiter<T>, options: JitterOptions = {}) {
    requireLimiter('limiter', limiter);
    const { fraction, random } = readOptions('WithJitterRateLimiter', options, OPTIONS);
    this.#limiter = limiter;
    this.#fraction = fraction;
    this.#random = random;
  }

  when(item: T): number {
    return cleanDelay(cleanDelay(this.#limiter.when(item)) * (1 - this.#fraction * this.#random()));
  }

  forget(item: T): void {
    this.#limiter.forget(item);
  }

  numRequeues(item: T): number {
    return this.#limiter.numRequeues(item);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ limiter: this.#limiter, fraction: this.#fraction }));
  }
}
