import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { readOptions, type OptionTable } from '../core/options.ts';
import { requireFraction, requireFunction } from '../core/validate.ts';
import { cleanDelay, requireLimiter, type RateLimiter } from './rate-limiter.ts';

/** Options of a {@link WithJitterRateLimiter}. */
export interface JitterOptions {
  /**
   * The random part of a delay, from 0 to 1: with 1 a delay is anything from 0 to the whole delay ("full jitter"), with 0.5 at
   * least half of it ("equal jitter").
   *
   * @default 0.5
   */
  readonly fraction?: number | undefined;
  /** Returns a number from 0 to below 1. @default Math.random */
  readonly random?: (() => number) | undefined;
}

const OPTIONS = {
  fraction: [requireFraction, 0.5],
  random: [requireFunction, Math.random],
} satisfies OptionTable<JitterOptions>;

/**
 * Shortens each delay at random, so that items that failed together are not processed again together.
 *
 * For the limiter of the items, not for a bucket: the slots that a bucket reserves differ already.
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

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ limiter: this.#limiter, fraction: this.#fraction }));
  }
}
