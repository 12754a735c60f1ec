/** The embedded broker, with a client and a server, against queues of functions: fastq, p-queue, and our own work queue. */
import type { BenchPart } from './lib/part.ts';
import { burstCases, halfCases } from './tasks/job-cases.ts';
import { latencyCases, scheduledCase } from './tasks/time-cases.ts';

export const part: BenchPart = {
  title: 'tasks: client, embedded broker and server in one process',
  remarks: [
    'fastq, p-queue and the work queue do much less: a job has no id, no state to inspect, no lease, no timeout, no ' +
      'priority among queues (p-queue has priorities), and cannot be scheduled, cancelled or retained. The comparison ' +
      'shows the cost of these features. All of them, and the embedded broker, lose everything when the process ends.',
    'A job of a task queue is a task that was made before; its type is what others have as their key.',
  ],
  cases: [...burstCases, ...halfCases, ...latencyCases, scheduledCase],
};
