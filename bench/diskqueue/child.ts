/**
 * A process that measures its own memory: `child.ts depth STORE FOLDER SMALL LARGE`, or `child.ts open FOLDER QUEUE`.
 */
import { performance } from 'node:perf_hooks';
import { DiskQueue } from 'escapement/diskqueue';
import { forceCollection } from '../lib/collector.ts';
import { liveBytes, trackUncountedMemory } from '../lib/memory.ts';

const CALLERS = 64;

/** Fills a store. @returns by how much the process grows between two depths. */
async function measureDepth(
  store: string,
  folder: string,
  small: number,
  large: number,
): Promise<Record<string, number>> {
  // Loaded here, so that the other measurement does not include these modules.
  const { putAll, withStore } = await import('./messages.ts');
  const { DEPTH_STORES } = await import('./stores.ts');
  trackUncountedMemory();
  const open = DEPTH_STORES.find(({ name }) => name === store)?.open;
  if (typeof open !== 'function') throw new Error(`unknown store '${store}'`);
  return withStore(open, folder, async (opened) => {
    await putAll(opened, 0, small, CALLERS);
    const [heapSmall, rssSmall] = [await liveBytes(), process.memoryUsage.rss()];
    await putAll(opened, small, large, CALLERS);
    const [heapLarge, rssLarge] = [await liveBytes(), process.memoryUsage.rss()];
    return { heap: heapLarge - heapSmall, rss: rssLarge - rssSmall };
  });
}

/** Opens the queue in a folder. @returns how long it takes, and by how much the process grows. */
async function measureOpen(dataPath: string, name: string): Promise<Record<string, number>> {
  forceCollection();
  const rssBefore = process.memoryUsage.rss();
  const startMs = performance.now();
  const queue = await DiskQueue.open({ name, dataPath });
  const openMs = performance.now() - startMs;
  const { data } = await queue.receive();
  const firstMs = performance.now() - startMs;
  const rss = process.memoryUsage.rss() - rssBefore;
  const peak = process.resourceUsage().maxRSS * 1_024;
  const { depth } = queue;
  await queue.close();
  return { openMs, firstMs, rss, peak, depth, bytes: data.length };
}

const [verb, first = '', second = '', small, large] = process.argv.slice(2);
const result = await (verb === 'depth'
  ? measureDepth(first, second, Number(small), Number(large))
  : measureOpen(first, second));
process.stdout.write(JSON.stringify(result));
