import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { outOfRange } from '../core/errors.ts';
import { requireFiniteNumber, requireFunction, requireOptions, type OptionNames } from '../core/validate.ts';
import { requireLimiter } from './limiter-options.ts';
import { cleanDelay, type RateLimiter } from './rate-limiter.ts';

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

const OPTIONS: OptionNames<JitterOptions> = { fraction: true, random: true };

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
    requireOptions('WithJitterRateLimiter', options, OPTIONS);
    const { fraction = 0.5, random = Math.random } = options;
    requireFiniteNumber('fraction', fraction);
    if (fraction < 0 || fraction > 1) throw outOfRange('fraction', 'from 0 to 1', fraction);
    requireFunction('random', random);
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
