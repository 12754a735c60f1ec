import { afterEach, expect, test, vi } from 'vitest';

/** The stream of events, which a test writes. */
class FakeSource {
  static latest: FakeSource | undefined;
  onmessage: ((event: { data: string }) => void) | undefined;

  constructor() {
    FakeSource.latest = this;
  }

  close(): void {
    this.onmessage = undefined;
  }
}

/** Imports a module of the page. Its types need those of a browser, which tests do not have. */
async function load<Module>(file: string): Promise<Module> {
  return (await import(new URL(`../../../src/dashboard/page/${file}`, import.meta.url).href)) as Module;
}

afterEach(() => vi.unstubAllGlobals());

test('a page that is open for long keeps the rates of a bounded number of queues, those of the latest events', async () => {
  const handlers = new Map<string, () => void>();
  const addEventListener = (name: string, handler: () => void): unknown => handlers.set(name, handler);
  const page = { addEventListener, visibilityState: 'visible' };
  const globals = { addEventListener, document: page, location: { pathname: '/' }, navigator: {} };
  for (const [name, value] of Object.entries({ ...globals, EventSource: FakeSource }))
    vi.stubGlobal(name, value);
  const { startLive } = await load<{ startLive: () => void }>('live.ts');
  const { ratesOf } = await load<{ ratesOf: (queue?: string) => { processed: number[] } }>('recent.ts');
  startLive();
  const pass = (queue: string, processedPerS: number): void => {
    const live = { queues: [{ queue, processedPerS, failedPerS: 0 }] };
    FakeSource.latest?.onmessage?.({ data: JSON.stringify(live) });
  };
  for (let nth = 0; nth < 70; nth++) pass('always', nth);
  for (let nth = 0; nth < 2_000; nth++) {
    pass(`q${nth}`, nth);
    if (nth % 100 === 0) pass('always', nth);
  }
  const known = Array.from({ length: 2_000 }, (_, nth) => ratesOf(`q${nth}`).processed.length);
  expect(known.filter((length) => length > 0).length).toBeLessThanOrEqual(1_000);
  expect(known.at(-1)).toBe(1);
  expect(ratesOf('always').processed).toHaveLength(60);
  expect(ratesOf().processed).toHaveLength(60);
  handlers.get('pagehide')?.();
});
