/**
 * The order of a round: forwards and backwards in turn, and everyone starts once, so nobody always follows the
 * contestant that leaves the largest heap behind.
 */
export function rotate<T>(items: readonly T[], round: number): T[] {
  const order = round % 2 === 0 ? items : items.toReversed();
  const first = items.length === 0 ? 0 : Math.floor(round / 2) % items.length;
  return [...order.slice(first), ...order.slice(0, first)];
}
