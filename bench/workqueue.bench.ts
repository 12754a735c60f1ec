/** The work queue against its alternatives: fastq, async.queue, p-queue. */
import type { BenchPart } from './lib/part.ts';
import { backlogCase, burstCases, oneJobCases } from './workqueue/job-cases.ts';
import { delayedCases, duplicateCases, limiterCase } from './workqueue/key-cases.ts';

export const part: BenchPart = {
  title: 'queued jobs, each key once',
  remarks: [
    'fastq, async.queue and p-queue do less: they have no keys, so a job that is added twice is done twice, by two workers ' +
      'at once if there are two; none has delays, and only p-queue limits rates. They do more in one respect: each job ' +
      'has a callback or a promise.',
    'fastq + Set: fastq, and a Set by hand that queues each key at most once.',
  ],
  cases: [...burstCases, ...oneJobCases, ...duplicateCases, limiterCase, ...delayedCases, backlogCase],
};
