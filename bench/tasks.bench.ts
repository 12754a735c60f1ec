/** The embedded broker, with a client and a server, against queues of functions: fastq, p-queue, and our own work queue. */
import { describeFolder } from './lib/folder.ts';
import type { BenchPart } from './lib/part.ts';
import { burstCases, halfCases } from './tasks/job-cases.ts';
import { compactionCase, durableCases, openCase } from './tasks/durable-cases.ts';
import { embeddedFlowCase } from './tasks/flow-cases.ts';
import { latencyCases, scheduledCase } from './tasks/time-cases.ts';

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
      'event loop is one transaction. A sync holds the event loop. Written here: the packages for that (liteque, plainjob) ' +
      'are before version 1, commit each insert, claim and completion by itself, and set synchronous=NORMAL.',
  ],
  cases: [
    ...burstCases,
    ...halfCases,
    ...latencyCases,
    scheduledCase,
    embeddedFlowCase,
    ...durableCases,
    openCase,
    compactionCase,
  ],
};
