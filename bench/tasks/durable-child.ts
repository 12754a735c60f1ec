/** A process that fills a folder, or opens it and measures that: `durable-child.ts fill FOLDER COUNT`, `durable-child.ts open FOLDER`. */
import { performance } from 'node:perf_hooks';
import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
import { liveBytes, trackUncountedMemory } from '../lib/memory.ts';
import { payloadOf } from '../redis/contestant.ts';

/** Number of tasks that are enqueued together. */
const BATCH = 1_000;

async function fill(dataPath: string, count: number): Promise<object> {
  const broker = await EmbeddedBroker.open({ dataPath, durability: 'os' });
  const client = new Client({ broker });
  for (let added = 0; added < count; added += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - added) }, (_, at) => added + at);
    await client.enqueueMany(numbers.map((number) => new Task('work', payloadOf(number))));
  }
  await broker.close();
  return {};
}

async function open(dataPath: string): Promise<object> {
  trackUncountedMemory();
  const bytesBefore = await liveBytes();
  const startMs = performance.now();
  const broker = await EmbeddedBroker.open({ dataPath });
  const openMs = performance.now() - startMs;
  const bytes = (await liveBytes()) - bytesBefore;
  const { counts } = await broker.queueStats('default');
  await broker.close();
  return { openMs, bytes, waiting: counts.pending };
}

const [verb, folder = '', count = ''] = process.argv.slice(2);
const result = await (verb === 'fill' ? fill(folder, Number(count)) : open(folder));
process.stdout.write(JSON.stringify(result));
