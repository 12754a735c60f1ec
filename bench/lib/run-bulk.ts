/** One round of one contestant of a bulk case: ready, timed section, what it left behind, away with it. */
import { performance } from 'node:perf_hooks';
import { CollectorWindow, type CollectorWatch } from './collector-watch.ts';
import { forceCollection } from './force-collection.ts';
import { liveBytes } from './heap-size.ts';
import { BYTES, COLLECTOR, NS_PER_MS, TIME, type Measurement } from './measurement.ts';
import type { BulkCase, BulkRun, MetricDefinition } from './part.ts';
import type { Residents } from './residents.ts';

/** A pause of the collector, in bulk cases that look for stalls. */
const LONGEST_PAUSE = 'longest gc pause';

export function bulkMetrics({ measuresBytes, measuresPauses, details = [] }: BulkCase): MetricDefinition[] {
  return [
    { name: TIME, unit: 'ns/item' },
    { name: COLLECTOR, unit: 'ns/item', isAside: true },
    ...(measuresBytes === true ? [{ name: BYTES, unit: 'bytes/item' }] : []),
    ...details,
    ...(measuresPauses === true ? [{ name: LONGEST_PAUSE, unit: 'ms', isAside: true }] : []),
  ];
}

export async function runBulk(
  open: (size: number) => BulkRun | Promise<BulkRun>,
  size: number,
  measuresBytes: boolean,
  collector: CollectorWatch,
  residents: Residents,
): Promise<Measurement> {
  const contestant = await open(size);
  residents.keepFirst(open, contestant);
  const before = await startingBytes(measuresBytes);
  const window = new CollectorWindow();
  try {
    const startMs = performance.now();
    const items = await contestant.run();
    const elapsedMs = performance.now() - startMs;
    window.close();
    const bytes = measuresBytes ? { [BYTES]: ((await liveBytes()) - before) / items } : {};
    const problem = contestant.check();
    const details = contestant.details?.() ?? {};
    await contestant.close();
    const { totalMs, longestMs } = await collector.read(window);
    const perItem = { [TIME]: (elapsedMs * NS_PER_MS) / items, [COLLECTOR]: (totalMs * NS_PER_MS) / items };
    return { values: { ...perItem, ...bytes, ...details, [LONGEST_PAUSE]: longestMs }, problem };
  } finally {
    await contestant.close();
  }
}

/** Every timed section starts on a clean heap, measured or not. */
async function startingBytes(measuresBytes: boolean): Promise<number> {
  if (measuresBytes) return liveBytes();
  forceCollection();
  return 0;
}
