/** Causes that are looked at: a chain that bites its own tail has no end. */
const MAX_DEPTH = 32;

/** Whether an error carries a brand, or one of those that have caused it: what Go's `errors.Is` asks. */
export function isKindOfError(error: unknown, brand: symbol): boolean {
  let one = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof one === 'object' && one !== null; depth++) {
    if (brand in one) return true;
    one = (one as { cause?: unknown }).cause;
  }
  return false;
}
