/** Schedules tasks, and tells how much larger the process has become. */
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Task } from 'escapement/tasks';
import { liveBytes } from '../lib/heap-size.ts';
import { NS_PER_MS } from '../lib/measurement.ts';
import { trackUncountedMemory } from '../lib/uncounted-memory.ts';
import { DelaySequence } from '../timer/delay-sequence.ts';
import { activeTimeouts } from '../timer/host-waiting-set.ts';
import { OurTasks } from './our-tasks.ts';

const PAYLOAD_BYTES = 32;
/** What is waited for together, so that few promises are held. */
const BATCH = 1_000;
const HOUR_MS = 3_600_000;

const [kind = '', count = ''] = process.argv.slice(2);
const size = Number(count);

interface Schedule {
  add(payload: Uint8Array, delayMs: number): unknown;
  waiting(): Promise<number> | number;
}

async function openOurs(): Promise<Schedule> {
  const ours = await OurTasks.open(1);
  await ours.start(() => undefined);
  return {
    add: (payload, processInMs) => ours.client.enqueue(new Task('later', payload, { processInMs })),
    waiting: () => ours.count('scheduled'),
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
process.exit(0); // there is nobody who would wait for a million tasks
