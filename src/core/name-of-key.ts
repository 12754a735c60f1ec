/** A key as a message shows it. An object may be one, and need not be able to say what it is. */
export function nameOfKey(key: unknown): string {
  const isPlain = ['string', 'number', 'bigint', 'symbol'].includes(typeof key);
  return isPlain ? `key ${String(key)}` : 'an object as key';
}
