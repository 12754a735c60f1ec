/** The work queue against what one would use in its place: fastq, async.queue, p-queue. */
import type { BenchPart } from './lib/part.ts';
import { backlogCase } from './workqueue/backlog-case.ts';
import { burstCases } from './workqueue/burst-cases.ts';
import { delayedCases } from './workqueue/delayed-cases.ts';
import { duplicateCases } from './workqueue/duplicate-cases.ts';
import { limiterCase } from './workqueue/limiter-case.ts';
import { oneJobCases } from './workqueue/one-job-cases.ts';

export const part: BenchPart = {
  title: 'jobs in line, each key once',
  remarks: [
    'fastq, async.queue and p-queue do less: they know no keys, so what is added twice is done twice, by two workers at once ' +
      'if there are two; none has delays, and p-queue alone limits rates. They do more in one thing: ' +
      'each job has a callback or a promise of its own.',
    'fastq + Set: fastq, and the Set by hand that makes each key queued at most once.',
  ],
  cases: [...burstCases, ...oneJobCases, ...duplicateCases, limiterCase, ...delayedCases, backlogCase],
};
