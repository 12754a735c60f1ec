/** TanStack Query with ten thousand observed queries, whose timeouts come from the host or from `escapement/timers`. */
import { environmentManager, notifyManager, QueryClient, QueryObserver } from '@tanstack/query-core';
import { timeoutManager, type TimeoutProvider } from '@tanstack/query-core';
import * as timers from 'escapement/timers';
import { runOf, type OpenMicro } from '../lib/kinds.ts';
import { baseline, contest, ours, rival, type Contestant } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';

const MIN_STALE_MS = 1_000;
const MAX_STALE_MS = 31_000;
const PROVIDERS = [
  baseline<TimeoutProvider>('default provider', globalThis as unknown as TimeoutProvider),
  rival<TimeoutProvider>('without timeouts', {
    setTimeout: () => 0,
    clearTimeout: () => undefined,
    setInterval: () => 0,
    clearInterval: () => undefined,
  }),
  ours<TimeoutProvider>('ours: escapement/timers', timers as unknown as TimeoutProvider),
];

/** The provider of the contestant that runs. A program sets one, once: then it is called directly. */
let provider: TimeoutProvider;
timeoutManager.setTimeoutProvider({
  setTimeout: (callback, delay) => provider.setTimeout(callback, delay),
  clearTimeout: (id) => provider.clearTimeout(id),
  setInterval: (callback, delay) => provider.setInterval(callback, delay),
  clearInterval: (id) => provider.clearInterval(id),
});

/** Queries with data, and an observer each. */
class Page {
  readonly #client = new QueryClient({ defaultOptions: { queries: { gcTime: 300_000 } } });
  readonly #keys: (readonly [string, number])[];
  readonly #unsubscribe: (() => void)[] = [];
  #updates = 0;

  constructor(size: number) {
    environmentManager.setIsServer(() => false); // a server sets no timeouts
    notifyManager.setScheduler((notify) => notify());
    const staleTimes = new DelaySequence(MIN_STALE_MS, MAX_STALE_MS);
    this.#keys = Array.from({ length: size }, (_, index) => ['user', index] as const);
    for (const queryKey of this.#keys) {
      this.#client.setQueryData(queryKey, 0);
      const observer = new QueryObserver(this.#client, { queryKey, staleTime: staleTimes.next() });
      this.#unsubscribe.push(observer.subscribe(() => undefined));
    }
  }

  /** New data for one query after the other: each sets its timeout anew. */
  update(count: number): void {
    for (let done = 0; done < count; done++) {
      const key = this.#keys[this.#updates % this.#keys.length] as readonly [string, number];
      this.#client.setQueryData(key, ++this.#updates);
    }
  }

  check(): string | undefined {
    const newest = Math.max(...this.#keys.map((key) => this.#client.getQueryData<number>(key) ?? NaN));
    return newest === this.#updates ? undefined : `the newest data is ${newest}, not ${this.#updates}`;
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#client.clear();
  }
}

export const updates: readonly Contestant<OpenMicro>[] = contest(PROVIDERS, (own) => (size) => {
  provider = own;
  const page = new Page(size);
  return runOf(page, (count: number) => page.update(count));
});
