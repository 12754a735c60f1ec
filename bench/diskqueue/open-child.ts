/** Opens the queue in a folder: how long it takes, and by how much the process grows. */
import { performance } from 'node:perf_hooks';
import { DiskQueue } from 'escapement/diskqueue';
import { forceCollection } from '../lib/force-collection.ts';
import { QUEUE_NAME } from './our-stores.ts';

const [dataPath = ''] = process.argv.slice(2);

forceCollection();
const rssBefore = process.memoryUsage.rss();
const startMs = performance.now();
const queue = await DiskQueue.open({ name: QUEUE_NAME, dataPath });
const openMs = performance.now() - startMs;
const { data } = await queue.receive();
const firstMs = performance.now() - startMs;
const rss = process.memoryUsage.rss() - rssBefore;
const peak = process.resourceUsage().maxRSS * 1_024;
const { depth } = queue;
await queue.close();
process.stdout.write(JSON.stringify({ openMs, firstMs, rss, peak, depth, bytes: data.length }));
