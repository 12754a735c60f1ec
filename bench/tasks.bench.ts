/** The embedded broker, with a client and a server, against queues of functions: fastq, p-queue, and our own work queue. */
import { describeFolder } from './lib/folder.ts';
import { bulk, scenario } from './lib/kinds.ts';
import { aside, atMost, metric, TIME, type BenchCase, type BenchPart } from './lib/part.ts';
import { P50, P99 } from './lib/work.ts';
import { flowRow } from './tasks/flow-row.ts';

const durable = () => import('./tasks/durable.ts');
const jobs = () => import('./tasks/jobs.ts');
const times = () => import('./tasks/times.ts');

function burst(name: string, queues: 'sync' | 'async'): BenchCase {
  return bulk({
    name: `enqueued to done, bursts of a thousand, 100 at once: ${name}`,
    size: { full: 200_000, quick: 5_000, of: 'tasks' },
    contestants: async () => (await jobs()).bursts(queues),
    targets: [atMost('ours: enqueue', TIME, 5_000)], // 200 000 tasks a second
  });
}

const HALF_SIZE = { full: 100_000, quick: 5_000, of: 'tasks' };

const LATENCY = {
  size: { full: 30_000, quick: 1_000, of: 'tasks' },
  metrics: [metric(P50, 'ms'), metric(P99, 'ms')],
  targets: [atMost('ours', P99, 5)],
};

const CALL_METRICS = [metric(TIME, 'µs/task'), metric('cpu', 'µs/task')];

export const part: BenchPart = {
  title: 'tasks: client, embedded broker and server in one process',
  remarks: [
    'fastq, p-queue and the work queue do much less: a job has no id, no state to inspect, no lease, no timeout, no ' +
      'priority among queues (p-queue has priorities), and cannot be scheduled, cancelled or retained. The comparison ' +
      'shows the cost of these features. All of them, and the embedded broker, lose everything when the process ends.',
    'A job of a task queue is a task that was made before; its type is what others have as their key.',
    `On a disk: ${describeFolder()} A payload is 64 bytes of JSON.`,
    'raw appends: the limit. One append for each task that is enqueued and one for each that is done, of 256 bytes; all ' +
      'pending ones are one write and one fdatasync.',
    'bullmq: on a redis-server of its own, over TCP, with appendonly yes and the appendfsync of its name.',
    'sqlite: a table with WAL and synchronous=FULL, in this process (the interface is that of node:sqlite); all that is pending in a turn of the ' +
      'event loop is one transaction. A sync holds the event loop. Written here: less than a task queue, as fast as one on SQLite can be.',
    'plainjob: a package for such queues, with synchronous=FULL (it sets NORMAL). It takes one job at a time, and commits each step by itself.',
  ],
  cases: [
    burst('the handler returns', 'sync'),
    burst('the handler is async', 'async'),
    bulk({
      name: 'enqueued, and nobody is there',
      note: 'A thousand at a time, while no server runs. A push of fastq appends an object to a list.',
      size: HALF_SIZE,
      contestants: async () => (await jobs()).enqueued,
    }),
    bulk({
      name: 'all are there, and done 100 at once',
      size: HALF_SIZE,
      contestants: async () => (await jobs()).processed,
    }),
    scenario({
      ...LATENCY,
      name: 'ten tasks a millisecond: from enqueued to started',
      note:
        'About ten are enqueued at once, because the host’s timers have a resolution of a millisecond. fastq calls its worker ' +
        'inside of push.',
      contestants: async () => (await times()).started,
    }),
    scenario({
      ...LATENCY,
      name: 'ten scheduled tasks a millisecond: from due to started',
      note: 'The host’s timers alone may be a millisecond late.',
      contestants: async () => (await times()).startedWhenDue,
    }),
    scenario({
      name: 'a million tasks scheduled, for the next hour to ten',
      note:
        'In a process of its own. Bytes do not include the payload, which is 32 bytes for each task, nor the promises of ' +
        'enqueue.',
      size: { full: 1_000_000, quick: 10_000, of: 'tasks' },
      rounds: 1,
      metrics: [metric('bytes each', 'bytes'), aside('host timeouts'), metric('time each', 'ns')],
      contestants: async () => (await times()).scheduled,
      targets: [atMost('ours', 'bytes each', 600), atMost('ours', 'host timeouts', 1)],
    }),
    flowRow('embedded'),
    scenario({
      name: 'on a disk, 100 callers: from enqueued to done',
      note:
        'Each caller waits until its task is done, and enqueues the next, for a second before it is measured. cpu: of this process, without ' +
        'Redis.',
      size: { full: 20_000, quick: 300, of: 'tasks' },
      metrics: CALL_METRICS,
      contestants: async () => (await durable()).calls(100, true),
    }),
    scenario({
      name: 'on a disk, one caller alone: enqueued',
      note: 'No server runs. The raw append is one append and one sync.',
      size: { full: 2_000, quick: 30, of: 'tasks' },
      metrics: CALL_METRICS,
      contestants: async () => (await durable()).calls(1, false),
    }),
    scenario({
      name: 'on a disk: open a folder with a million waiting tasks',
      note:
        'In a process of its own that does nothing else. Memory: live bytes after a forced collection, the payload of 64 bytes ' +
        'included.',
      size: { full: 1_000_000, quick: 2_000, of: 'tasks' },
      rounds: 3,
      metrics: [metric('open', 'ms'), metric('memory', 'bytes/task'), metric('disk', 'bytes/task')],
      contestants: async () => (await durable()).openings,
    }),
    scenario({
      name: 'on a disk: stalls by compaction, 100 callers',
      note:
        'A stall is the longest time between two turns of the event loop, measured by a chain of setImmediate, pauses of the ' +
        'collector included. A quarter as many scheduled tasks wait meanwhile, and are written again. Durability is interval.',
      size: { full: 200_000, quick: 3_000, of: 'tasks' },
      metrics: [metric('longest stall', 'ms'), metric(TIME, 'µs/task'), aside('files removed')],
      contestants: async () => (await durable()).compaction,
    }),
  ],
};
