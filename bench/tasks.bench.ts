/** The embedded broker, with a client and a server, against queues of functions: fastq, p-queue, and our own work queue. */
import type { BenchPart } from './lib/part.ts';
import { burstCases } from './tasks/burst-cases.ts';
import { enqueueCase, processCase } from './tasks/half-cases.ts';
import { latencyCases } from './tasks/latency-cases.ts';
import { scheduledCase } from './tasks/scheduled-case.ts';

export const part: BenchPart = {
  title: 'tasks: client, embedded broker and server in one process',
  remarks: [
    'fastq, p-queue and the work queue do much less: a job has no id, no state that others can look at, no lease, no timeout, ' +
      'no priority among queues (p-queue has priorities), and cannot be scheduled, cancelled or retained. They say what the rest costs. ' +
      'All of them forget everything with the process, and so does the embedded broker.',
    'A job of a task queue is a task that was made before; its type is what others have as their key.',
  ],
  cases: [...burstCases, enqueueCase, processCase, ...latencyCases, scheduledCase],
};
