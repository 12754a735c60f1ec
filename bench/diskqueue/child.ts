/** What is measured in a process of its own (see `inChild`): its memory, and how long it takes to open a queue. */
import { performance } from 'node:perf_hooks';
import { DiskQueue } from 'escapement/diskqueue';
import { forceCollection } from '../lib/collector.ts';
import { liveBytes, trackSharedMemories } from '../lib/memory.ts';

const CALLERS = 64;

/** Fills a store. @returns by how much the process grows between two depths. */
export async function measureDepth(
  store: string,
  folder: string,
  small: number,
  large: number,
): Promise<{ readonly heap: number; readonly rss: number }> {
  // Loaded here, so that the other measurement does not include these modules.
  const { closing } = await import('../lib/folder.ts');
  const { putAll } = await import('./messages.ts');
  const { STORES } = await import('./stores.ts');
  trackSharedMemories();
  const open = STORES.depth.find(({ name }) => name === store)?.open;
  if (typeof open !== 'function') throw new Error(`unknown store '${store}'`);
  return closing(await open(folder), async (opened) => {
    await putAll(opened, 0, small, CALLERS);
    const [heapSmall, rssSmall] = [await liveBytes(), process.memoryUsage.rss()];
    await putAll(opened, small, large, CALLERS);
    const [heapLarge, rssLarge] = [await liveBytes(), process.memoryUsage.rss()];
    return { heap: heapLarge - heapSmall, rss: rssLarge - rssSmall };
  });
}

interface Opening {
  readonly openMs: number;
  readonly firstMs: number;
  /** Growth of the process until it had the first message, and its size at the peak, in bytes. */
  readonly rss: number;
  readonly peak: number;
  readonly depth: number;
  /** Size of the first message. */
  readonly bytes: number;
}

/** Opens the queue in a folder, and receives its first message. */
export async function measureOpen(dataPath: string, name: string): Promise<Opening> {
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
