/** The work queue against its alternatives: fastq, async.queue, p-queue. */
import { bulk, micro, scenario } from './lib/kinds.ts';
import { aside, atLeast, atMost, BYTES, metric, TIME } from './lib/part.ts';
import type { BenchCase, BenchPart } from './lib/part.ts';

const keys = () => import('./workqueue/keys.ts');
const runs = () => import('./workqueue/runs.ts');

/** A million jobs a second, and as many as fastq. */
const BURST_TARGETS = [atMost('ours: run', TIME, 1_000), atLeast('ours: run', TIME, 1)];

function burst(name: string, queues: 'sync' | 'async', areKeysNew = false): BenchCase {
  return bulk({
    name: `bursts of 10 000 jobs with keys of their own: ${name}`,
    note: areKeysNew
      ? 'The time includes making the strings. A map compares equal strings character by character.'
      : undefined,
    size: { full: 500_000, quick: 10_000, of: 'jobs' },
    contestants: async () => (await runs()).bursts(queues, areKeysNew),
    targets: BURST_TARGETS,
  });
}

const MILLION = { full: 1_000_000, quick: 20_000, of: 'items' };

export const part: BenchPart = {
  title: 'queued jobs, each key once',
  remarks: [
    'fastq, async.queue and p-queue do less: they have no keys, so a job that is added twice is done twice, by two workers ' +
      'at once if there are two; none has delays, and only p-queue limits rates. They do more in one respect: each job ' +
      'has a callback or a promise.',
    'fastq + Set: fastq, and a Set by hand that queues each key at most once.',
  ],
  cases: [
    burst('the worker returns', 'sync'),
    burst('the worker is async', 'async'),
    burst('the worker is async, every key is a new string', 'async', true),
    bulk({
      name: 'one job after the other, each awaited: always the same key',
      size: { full: 500_000, quick: 4_000, of: 'jobs' },
      contestants: async () => (await runs()).oneByOne,
      targets: [atLeast('ours: get, done', TIME, 1)],
    }),
    micro({
      name: 'add of a key that is queued: the same string',
      size: { full: 10_000, quick: 10_000, of: 'keys queued' },
      contestants: async () => (await keys()).duplicates,
      targets: [atMost('ours', TIME, 125)], // eight million a second
    }),
    micro({
      name: 'rate limiters: when + forget',
      note: 'The default limiter counts the failures of each key, and reads the clock for a token bucket that all keys share.',
      size: { full: 10_000, quick: 10_000, of: 'keys in turn' },
      contestants: async () => (await keys()).limiters,
    }),
    bulk({
      name: 'addAfter: delays 1–10 min',
      note: 'The keys exist before and are not counted: a string of 18 characters, as most of a million have, is 40 bytes.',
      size: MILLION,
      measuresBytes: true,
      details: [metric('host timeouts')],
      contestants: async () => (await keys()).adding,
      targets: [atMost('ours', BYTES, 120), atMost('ours', 'host timeouts', 1)],
    }),
    bulk({
      name: 'delays are over: queued and done',
      note:
        'They become due while the program is busy; timed is from there until the last job is done. Ours works in several ' +
        'turns of the event loop, with I/O in between; the host calls back all in one.',
      size: MILLION,
      contestants: async () => (await keys()).firing,
    }),
    scenario({
      name: 'a backlog: each job adds a new key at the back',
      note: 'Growth is the time with all in line, divided by the time with a hundredth. That of a bare Map grows too, because of cache misses.',
      size: { full: 1_000_000, quick: 20_000, of: 'jobs in line' },
      rounds: 3,
      metrics: [metric('all in line', 'ns/job'), metric('a hundredth in line', 'ns/job'), aside('growth')],
      contestants: async () => (await runs()).backlog,
      targets: [atMost('ours: run', 'growth', 3)],
    }),
  ],
};
