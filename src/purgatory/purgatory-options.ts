import { requireClock, systemClock, type Clock } from '../core/clock.ts';
import { outOfRange, wrongType } from '../core/errors.ts';
import { objectWith, type OptionTable } from '../core/options.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireBoolean, requireFunction } from '../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import type { Timer } from '../timer/timer.ts';
import type { DelayedOperation } from './delayed-operation.ts';

/** The result of `keyOf`: keys with equal results are the same key. */
export type PlainKey = string | number | bigint | symbol;

/** Options of a `DelayedOperationPurgatory`. All are checked by its constructor. */
export interface PurgatoryOptions<K, T extends DelayedOperation = DelayedOperation> {
  /**
   * The timer of the timeouts. It can be shared, and is not closed with the purgatory.
   *
   * @default a SystemTimer of its own, which is closed with the purgatory
   */
  readonly timer?: Timer | undefined;
  /** With false no operation ever times out. @default true */
  readonly timerEnabled?: boolean | undefined;
  /**
   * Returns a comparable value for a structured key: keys with equal results are the same key.
   *
   * @default the key itself, compared as in a `Map`: an object is equal only to itself
   * @example (partition) => `${partition.topic}-${partition.index}`
   */
  readonly keyOf?: ((key: K) => PlainKey) | undefined;
  /**
   * Called with each error that an operation throws. The check that threw is over by then: `forceComplete` has the reason
   * `'forced'`. An error never stops another operation.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onError?: ((error: unknown, operation: NoInfer<T>) => void) | undefined;
  /**
   * Receives the measurements that docs/metrics.md lists. With metrics every operation costs two readings of the clock,
   * and the condition of one that expires is checked once more.
   *
   * @default none
   */
  readonly metrics?: MetricsProvider | undefined;
  /** The clock of measured durations, and of the purgatory's own timer. @default systemClock */
  readonly clock?: Clock | undefined;
}

export const PURGATORY_OPTIONS = {
  timer: [objectWith('a Timer', 'add', 'close'), undefined],
  timerEnabled: [requireBoolean, true],
  keyOf: [requireFunction, undefined],
  onError: [requireFunction, reportUncaught],
  metrics: [requireMetrics, undefined],
  clock: [requireClock, systemClock],
} satisfies OptionTable<PurgatoryOptions<unknown>>;

/** Up to so many keys comparing them with one another is faster than making a set. */
const FEW = 8;

/** Maps the keys of a purgatory to values that a `Map` can compare. */
export class WatchKeys<K> {
  readonly #keyOf: ((key: K) => PlainKey) | undefined;

  constructor(keyOf: ((key: K) => PlainKey) | undefined) {
    this.#keyOf = keyOf;
  }

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - the key is `undefined`, or `keyOf` returned something that is not a string, a
   * number, a bigint or a symbol.
   */
  plain(key: K): unknown {
    if (this.#keyOf === undefined) {
      if (key === undefined) throw wrongType('key', 'defined', key);
      return key;
    }
    const plain: unknown = this.#keyOf(key);
    if (!isPlain(plain)) throw wrongType('keyOf(key)', 'a string, number, bigint or symbol', plain);
    return plain;
  }

  /**
   * Returns all of them, each once.
   *
   * @throws RangeError `ERR_OUT_OF_RANGE` - there is none.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not an iterable of keys. A string is not accepted, although it is iterable.
   */
  all(watchKeys: Iterable<K>): readonly unknown[] {
    if (!isIterable(watchKeys)) {
      throw wrongType('watchKeys', 'an array or another iterable of keys', watchKeys);
    }
    const plain: unknown[] = [];
    for (const key of watchKeys) plain.push(this.plain(key));
    if (plain.length === 0) throw outOfRange('watchKeys', 'at least one key', watchKeys);
    return withoutRepeats(plain);
  }
}

function withoutRepeats(keys: readonly unknown[]): readonly unknown[] {
  if (keys.length > FEW) return [...new Set(keys)];
  for (let place = 0; place < keys.length - 1; place++) {
    // includes() compares as a map does: NaN equals NaN.
    if (keys.includes(keys[place], place + 1)) return [...new Set(keys)];
  }
  return keys;
}

function isPlain(key: unknown): key is PlainKey {
  return ['string', 'number', 'bigint', 'symbol'].includes(typeof key);
}

function isIterable(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { [Symbol.iterator]?: unknown })[Symbol.iterator] === 'function'
  );
}
