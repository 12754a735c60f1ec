import { environmentManager, QueryClient, QueryObserver, timeoutManager } from '@tanstack/query-core';
import * as timers from 'escapement/timers';
import { beforeAll, expect, test } from 'vitest';

/** The timeouts of the host that keep this process alive. */
function hostTimeouts(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

beforeAll(() => {
  timeoutManager.setTimeoutProvider(timers);
  environmentManager.setIsServer(() => false); // a server fetches nothing by itself
});

test('the garbage-collection timeouts of a thousand queries of TanStack Query are one timeout of the host', async () => {
  const client = new QueryClient();
  const before = hostTimeouts();
  for (let i = 0; i < 1_000; i++) {
    await client.query({ queryKey: ['user', i], queryFn: () => i, gcTime: 300_000 });
  }
  expect(hostTimeouts() - before).toBeLessThanOrEqual(1);
  client.clear();
  expect(hostTimeouts() - before).toBeLessThanOrEqual(0);
});

test('a query of TanStack Query becomes stale, is fetched again at its interval, and is removed when its time is over', async () => {
  const client = new QueryClient();
  client.mount();
  let fetches = 0;
  const observer = new QueryObserver(client, {
    queryKey: ['clock'],
    queryFn: () => ++fetches,
    staleTime: 10,
    gcTime: 10,
    refetchInterval: 15,
    refetchIntervalInBackground: true,
  });
  const thirdFetch = new Promise<void>((resolve) => {
    const unsubscribe = observer.subscribe(({ data }) => {
      if (data !== 3) return;
      unsubscribe();
      resolve();
    });
  });
  await thirdFetch;
  while (client.getQueryCache().find({ queryKey: ['clock'] }) !== undefined) {
    await timers.promises.setTimeout(5);
  }
  expect(fetches).toBe(3);
  client.unmount();
});
