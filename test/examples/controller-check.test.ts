import { describe, expect, it } from 'vitest';
import type { DemoResult } from '../../examples/controller/demo/demo-result.ts';
import type { Attempt } from '../../examples/controller/demo/journal.ts';
import { SAVED } from '../../examples/controller/demo/scenario.ts';
import { selfCheck } from '../../examples/controller/demo/self-check.ts';

function attempt(key: string, changes: Partial<Attempt> = {}): Attempt {
  return { key, retries: 0, wasWanted: true, startMs: 0, endMs: 1, outcome: 'written', ...changes };
}

/** Given up after two retries, 10 and 20 ms later; then healed. */
function failing(key: string): Attempt[] {
  return [
    attempt(key, { outcome: 'failed' }),
    attempt(key, { retries: 1, wasWanted: false, startMs: 11, endMs: 12, outcome: 'failed' }),
    attempt(key, { retries: 2, wasWanted: false, startMs: 32, endMs: 33, outcome: 'dropped' }),
    attempt(key, { startMs: 40, endMs: 41 }),
  ];
}

const ATTEMPTS: readonly Attempt[] = [
  ...failing('broken.json'),
  ...failing('blocked.json'),
  attempt('/', { wasWanted: false, outcome: 'listed' }),
  ...SAVED.flatMap((key) => [attempt(key), attempt(key)]),
];

function scraped(changes: Record<string, number> = {}): Map<string, number> {
  const count = ATTEMPTS.length;
  const counters = {
    controller_events_total: 100,
    workqueue_adds_total: count,
    workqueue_queue_duration_seconds_count: count,
    workqueue_work_duration_seconds_count: count,
    workqueue_retries_total: 5,
  };
  return new Map(Object.entries({ ...counters, ...changes }));
}

/** A run in which all is well. */
const GOOD: DemoResult = {
  maxRetries: 2,
  retryDelayMs: 10,
  workers: 4,
  changes: 90,
  events: 100,
  attempts: ATTEMPTS,
  overlaps: [],
  mostInWork: 4,
  during: new Map([['workqueue_depth', 3]]),
  afterwards: scraped(),
  trees: { files: 3, differences: [] },
  left: [],
};

/** The same attempts, one of them other. */
function other(index: number, changes: Partial<Attempt>): readonly Attempt[] {
  return ATTEMPTS.map((attempt, at) => (at === index ? { ...attempt, ...changes } : attempt));
}

describe('the self-check of the controller', () => {
  it('has nothing to say of a run in which all is well', () => {
    expect(selfCheck(GOOD)).toEqual([]);
  });

  it.each<[string, Partial<DemoResult>, string]>([
    [
      'an output that is wrong',
      { trees: { files: 3, differences: ['a', 'b'] } },
      'what the source says: a and 1 more',
    ],
    ['a comparison of nothing', { trees: { files: 0, differences: [] } }, 'no source file'],
    ['a file with two workers', { overlaps: ['a.json'] }, 'a.json was with two workers at once, 1 times'],
    ['too many workers', { mostInWork: 5 }, '5 keys were in work at once, by 4 workers'],
    [
      'an add for each event',
      { events: 15, afterwards: scraped({ controller_events_total: 15 }) },
      '15 adds for 15',
    ],
    [
      'an add that nobody saw',
      { afterwards: scraped({ workqueue_adds_total: 16 }) },
      'workqueue_adds_total is 16',
    ],
    ['an event that was not counted', { events: 101 }, 'controller_events_total is 100, and 101 were seen'],
    ['retries that were not counted', { afterwards: scraped({ workqueue_retries_total: 3 }) }, '4 failures'],
    ['a missing metric', { afterwards: new Map() }, 'controller_events_total is NaN'],
    [
      'a file that was not given up',
      { attempts: other(2, { outcome: 'failed' }) },
      'broken.json was never given up',
    ],
    [
      'a file given up early',
      { attempts: other(6, { retries: 1 }) },
      'blocked.json was given up after 1 retries',
    ],
    [
      'a file that did not heal',
      { attempts: other(3, { outcome: 'unchanged' }) },
      'broken.json did not heal',
    ],
    [
      'a delay that did not grow',
      { attempts: other(2, { startMs: 22 }) },
      'retry 2 of broken.json came after 10.0 ms',
    ],
    ['resyncs that were asked for', { attempts: other(8, { wasWanted: true }) }, 'no periodic resync'],
    [
      'a file that nobody listens for',
      { attempts: other(9, { key: 'x.json' }) },
      'only looked at when everything was',
    ],
    ['a retry that was cut off', { left: ['a.json'] }, 'a.json still waited'],
    ['a gauge that is not there', { during: new Map() }, 'there was no workqueue_depth'],
    [
      'a gauge that stays',
      { afterwards: scraped({ workqueue_depth: 0 }) },
      'gauges of the queue are still there',
    ],
  ])('complains of %s', (_, changes, complaint) => {
    expect(selfCheck({ ...GOOD, ...changes }).join('\n')).toContain(complaint);
  });

  it('says so when delays could not be seen', () => {
    const attempts = ATTEMPTS.map((attempt) => ({ ...attempt, wasWanted: true }));
    expect(selfCheck({ ...GOOD, attempts }).join('\n')).toContain('only 0 delays of 2 were seen');
  });
});
