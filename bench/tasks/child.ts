/** What is measured in a process of its own (see `inChild`): a folder with many tasks, and many scheduled tasks. */
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Client, EmbeddedBroker, Task } from 'escapement/tasks';
import { closing } from '../lib/folder.ts';
import { activeTimeouts } from '../lib/machine.ts';
import { liveBytes, trackSharedMemories } from '../lib/memory.ts';
import { HOUR_MS, NS_PER_MS } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { batches } from '../lib/work.ts';
import { payloadOf } from '../redis/contestant.ts';
import { OurTasks } from './our-tasks.ts';

export async function fill(dataPath: string, count: number): Promise<void> {
  await closing(EmbeddedBroker.open({ dataPath, durability: 'os' }), async (broker) => {
    const client = new Client({ broker });
    for (const numbers of batches(count)) {
      await client.enqueueMany(numbers.map((number) => new Task('work', payloadOf(number))));
    }
  });
}

interface Opening {
  readonly openMs: number;
  readonly bytes: number;
  readonly waiting: number;
}

export async function open(dataPath: string): Promise<Opening> {
  trackSharedMemories();
  const bytesBefore = await liveBytes();
  const startMs = performance.now();
  return closing(EmbeddedBroker.open({ dataPath }), async (broker) => {
    const openMs = performance.now() - startMs;
    const bytes = (await liveBytes()) - bytesBefore;
    const { counts } = await broker.queueStats('default');
    return { openMs, bytes, waiting: counts.pending };
  });
}

const PAYLOAD_BYTES = 32;

interface Schedule {
  add(payload: Uint8Array, delayMs: number): unknown;
  waiting(): Promise<number> | number;
}

async function openOurs(): Promise<Schedule> {
  const tasks = await OurTasks.open();
  await tasks.start(1);
  return {
    add: (payload, processInMs) => tasks.client.enqueue(new Task('later', payload, { processInMs })),
    waiting: () => tasks.count('scheduled'),
  };
}

function openTimeouts(): Schedule {
  const kept: object[] = [];
  const expire = (_task: object): void => undefined;
  return {
    add: (payload, delayMs) => {
      const task = { id: randomUUID(), type: 'later', payload: payload.slice(), timeout: {} as unknown };
      task.timeout = setTimeout(expire, delayMs, task);
      kept.push(task);
    },
    waiting: () => kept.length,
  };
}

interface Growth {
  /** For each task. */
  readonly bytes: number;
  readonly ns: number;
  readonly armed: number;
  readonly waiting: number;
}

/** Schedules tasks. @returns by how much the process grows. */
export async function schedule(contestant: 'ours' | 'setTimeout', size: number): Promise<Growth> {
  trackSharedMemories();
  const scheduler = contestant === 'ours' ? await openOurs() : openTimeouts();
  const delays = new DelaySequence(HOUR_MS, 10 * HOUR_MS);
  const payload = new Uint8Array(PAYLOAD_BYTES).fill(1);
  const armedBefore = activeTimeouts();
  const bytesBefore = await liveBytes();
  const startMs = performance.now();
  // Awaited a thousand at a time, so that few promises are held.
  for (const numbers of batches(size)) {
    await Promise.all(numbers.map(() => scheduler.add(payload, delays.next())));
  }
  const elapsedMs = performance.now() - startMs;
  const bytes = ((await liveBytes()) - bytesBefore) / size - PAYLOAD_BYTES;
  const armed = activeTimeouts() - armedBefore;
  return { bytes, armed, ns: (elapsedMs * NS_PER_MS) / size, waiting: await scheduler.waiting() };
}
