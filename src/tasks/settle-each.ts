/** As `Promise.allSettled` of the work on each item; a promise only for those where there is something to wait for. */
export async function settleEach<T, R>(
  items: readonly T[],
  work: (item: T) => R | Promise<R>,
): Promise<readonly PromiseSettledResult<R>[]> {
  const started = items.map((item) => start(item, work));
  const settled: PromiseSettledResult<R>[] = [];
  // None of them rejects.
  for (const one of started) settled.push(one instanceof Promise ? await one : one);
  return settled;
}

function start<T, R>(
  item: T,
  work: (item: T) => R | Promise<R>,
): PromiseSettledResult<R> | Promise<PromiseSettledResult<R>> {
  try {
    const value = work(item);
    return value instanceof Promise ? value.then(fulfilled<R>, rejected) : fulfilled(value);
  } catch (reason) {
    return rejected(reason);
  }
}

function fulfilled<R>(value: R): PromiseFulfilledResult<R> {
  return { status: 'fulfilled', value };
}

function rejected(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason };
}
