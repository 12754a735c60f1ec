/** A process that schedules tasks and measures by how much it grows: `scheduled-child.ts CONTESTANT COUNT`. */
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Task } from 'escapement/tasks';
import { activeTimeouts } from '../lib/machine.ts';
import { liveBytes, trackUncountedMemory } from '../lib/memory.ts';
import { NS_PER_MS } from '../lib/part.ts';
import { DelaySequence } from '../lib/random.ts';
import { OurTasks } from './our-tasks.ts';

const PAYLOAD_BYTES = 32;
/** Number of tasks that are awaited together, so that few promises are held. */
const BATCH = 1_000;
const HOUR_MS = 3_600_000;

const [kind = '', count = ''] = process.argv.slice(2);
const size = Number(count);

interface Schedule {
  add(payload: Uint8Array, delayMs: number): unknown;
  waiting(): Promise<number> | number;
}

async function openOurs(): Promise<Schedule> {
  const tasks = await OurTasks.open(1);
  await tasks.start(() => undefined);
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

trackUncountedMemory();
const schedule = kind === 'ours' ? await openOurs() : openTimeouts();
const delays = new DelaySequence(HOUR_MS, 10 * HOUR_MS);
const payload = new Uint8Array(PAYLOAD_BYTES).fill(1);
const armedBefore = activeTimeouts();
const bytesBefore = await liveBytes();

const startMs = performance.now();
for (let added = 0; added < size; added += BATCH) {
  await Promise.all(
    Array.from({ length: Math.min(BATCH, size - added) }, () => schedule.add(payload, delays.next())),
  );
}
const elapsedMs = performance.now() - startMs;

const bytes = ((await liveBytes()) - bytesBefore) / size - PAYLOAD_BYTES;
const armed = activeTimeouts() - armedBefore;
const waiting = await schedule.waiting();
process.stdout.write(JSON.stringify({ bytes, armed, ns: (elapsedMs * NS_PER_MS) / size, waiting }));
process.exit(0); // a million tasks are still scheduled
