/** Lets promise jobs settle, all of them. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What has become of a promise by now. */
export interface Outcome<T> {
  readonly promise: Promise<T>;
  state: 'pending' | 'resolved' | 'rejected';
  value: unknown;
}

/** Watches a promise; also says that somebody handles its rejection. */
export function watch<T>(promise: Promise<T>): Outcome<T> {
  const outcome: Outcome<T> = { promise, state: 'pending', value: undefined };
  promise.then(
    (value) => Object.assign(outcome, { state: 'resolved', value }),
    (reason: unknown) => Object.assign(outcome, { state: 'rejected', value: reason }),
  );
  return outcome;
}

/** What the promise rejects with; fails if it does not. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = watch(promise);
  await settled();
  if (outcome.state !== 'rejected') throw new Error(`expected it to reject, but it is ${outcome.state}`);
  return outcome.value;
}
