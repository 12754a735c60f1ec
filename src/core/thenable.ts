/** Whether there is something to wait for: a loop that awaits plain values costs a turn of the microtask queue each. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  );
}
