import { outOfRange, wrongType } from '../core/errors.ts';
import type { PlainKey } from './purgatory-options.ts';

/** Turns the keys that users give into what a map can compare. */
export class WatchKeys<K> {
  readonly #keyOf: ((key: K) => PlainKey) | undefined;

  constructor(keyOf: ((key: K) => PlainKey) | undefined) {
    this.#keyOf = keyOf;
  }

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - the key is `undefined`, or `keyOf` made something of it that is not
   * a string, a number, a bigint or a symbol.
   */
  plain(key: K): unknown {
    if (this.#keyOf === undefined) {
      if (key === undefined) throw wrongType('key', 'a key', key);
      return key;
    }
    const plain: unknown = this.#keyOf(key);
    if (!isPlain(plain)) throw wrongType('keyOf(key)', 'a string, number, bigint or symbol', plain);
    return plain;
  }

  /**
   * All of them, each once.
   *
   * @throws RangeError `ERR_OUT_OF_RANGE` - there is none.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not an iterable of keys; a string is none, though it has characters.
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

/** A few keys are compared with one another faster than a set is made. */
const FEW = 8;

function withoutRepeats(keys: readonly unknown[]): readonly unknown[] {
  if (keys.length > FEW) return [...new Set(keys)];
  for (let place = 0; place < keys.length - 1; place++) {
    // It compares as a map does: NaN is NaN.
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
