/** Fills a store, and tells how large the process is at two depths. */
import { liveBytes } from '../lib/heap-size.ts';
import { trackUncountedMemory } from '../lib/uncounted-memory.ts';
import { putAll } from './callers.ts';
import { DEPTH_KINDS } from './depth-kinds.ts';
import { withStore } from './message-store.ts';

const CALLERS = 64;
const [kindName = '', folder = '', small = '', large = ''] = process.argv.slice(2);

trackUncountedMemory();
const open = DEPTH_KINDS.find(({ name }) => name === kindName)?.open;
if (typeof open !== 'function') throw new Error(`no store is called '${kindName}'`);

const sizes = await withStore(open, folder, async (store) => {
  await putAll(store, 0, Number(small), CALLERS);
  const [heapSmall, rssSmall] = [await liveBytes(), process.memoryUsage.rss()];
  await putAll(store, Number(small), Number(large), CALLERS);
  const [heapLarge, rssLarge] = [await liveBytes(), process.memoryUsage.rss()];
  return { heap: heapLarge - heapSmall, rss: rssLarge - rssSmall };
});
process.stdout.write(JSON.stringify(sizes));
