/** Formats a key for a message. A key may be an object that cannot be converted to a string. */
export function nameOfKey(key: unknown): string {
  const isPlain = ['string', 'number', 'bigint', 'symbol'].includes(typeof key);
  return isPlain ? `key ${String(key)}` : 'an object as key';
}
