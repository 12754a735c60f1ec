import { describe, expect, it } from 'vitest';
import type { Arrival } from '../../examples/spool/demo/arrivals.ts';
import type { DemoResult, ProcessFate } from '../../examples/spool/demo/demo-result.ts';
import { countRepeats } from '../../examples/spool/demo/repeats.ts';
import { selfCheck } from '../../examples/spool/demo/self-check.ts';

const [COLLECTOR, NEXT_COLLECTOR] = [10, 11];
const [SHIPPER, NEXT_SHIPPER] = [20, 21];

function arrival(number: number, changes: Partial<Arrival> = {}): Arrival {
  return { number, run: 1, shipper: SHIPPER, collector: COLLECTOR, ...changes };
}

/** Of run 2. */
function later(number: number, changes: Partial<Arrival> = {}): Arrival {
  return arrival(number, { run: 2, shipper: NEXT_SHIPPER, collector: NEXT_COLLECTOR, ...changes });
}

const ARRIVALS: readonly Arrival[] = [
  arrival(1),
  arrival(2),
  // The collector is killed before it can answer for line 2.
  arrival(2, { collector: NEXT_COLLECTOR }),
  arrival(3, { collector: NEXT_COLLECTOR }),
  // The shipper is killed before it can write down that line 3 was forwarded, and before it can confirm line 4.
  arrival(3, { shipper: NEXT_SHIPPER, collector: NEXT_COLLECTOR }),
  arrival(4, { shipper: NEXT_SHIPPER, collector: NEXT_COLLECTOR }),
  later(4),
  later(5),
];

function fate(name: string, changes: Partial<ProcessFate> = {}): ProcessFate {
  return { name, pid: 1, end: { code: 0, signal: null }, isRunning: false, ...changes };
}

const KILLED = { end: { code: null, signal: 'SIGKILL' } };
const PROCESSES = [
  ...[fate('collector', KILLED), fate('collector'), fate('producer')],
  ...[fate('shipper', KILLED), fate('shipper')],
];

/** A run in which all is well. */
const GOOD: DemoResult = {
  ratePerSecond: 5,
  batchLines: 1,
  produced: 5,
  runs: [
    { pid: SHIPPER, end: KILLED.end, first: 1, confirmed: 3 },
    { pid: NEXT_SHIPPER, end: { code: 0, signal: null }, first: 4, confirmed: 5 },
  ],
  arrivals: { lines: ARRIVALS, strange: [] },
  left: 0,
  deepest: 3,
  retries: 2,
  processes: PROCESSES,
};

function withLines(lines: readonly Arrival[]): DemoResult {
  return { ...GOOD, arrivals: { lines, strange: [] } };
}

describe('what arrived twice', () => {
  it('is counted by its reason', () => {
    expect(countRepeats(ARRIVALS)).toEqual({
      ofCollectorKills: 1,
      ofShipperKills: 1,
      ofProducer: 1,
      unexplained: [],
    });
  });
});

describe('the self-check of the spool', () => {
  it('has nothing to say when all is well', () => {
    expect(selfCheck(GOOD)).toEqual([]);
  });

  it.each<[what: string, result: DemoResult, complaint: string]>([
    ['a line that never arrived', { ...GOOD, produced: 7 }, 'line 6 and 1 more never arrived'],
    [
      'a confirmed line that only arrived because it was given to the next shipper',
      { ...GOOD, runs: GOOD.runs.map((run) => ({ ...run, confirmed: 5 })) },
      'shipper 1 has confirmed line 5 and lost it',
    ],
    [
      'a line that nobody wrote',
      { ...GOOD, arrivals: { lines: ARRIVALS, strange: ['li'] } },
      "a line arrived that nobody has written: 'li'",
    ],
    [
      'lines in another order',
      withLines([arrival(2), arrival(1), ...ARRIVALS.slice(3)]),
      'line 1 of run 1 came after line 2',
    ],
    [
      'a line that came twice without a kill',
      withLines([...ARRIVALS, later(5)]),
      'line 5 of run 2 came twice, and nobody was killed between',
    ],
    [
      'a collector whose kill is an excuse for too much',
      withLines([...ARRIVALS.slice(0, 3), arrival(1, { collector: NEXT_COLLECTOR }), ...ARRIVALS.slice(3)]),
      '2 lines came twice for 1 kills of the collector',
    ],
    [
      'a shipper whose kill is an excuse for too much',
      withLines([
        ...[1, 2, 3, 4, 5].map((number) => arrival(number)),
        ...[1, 2, 3, 4, 5].map((number) => arrival(number, { shipper: NEXT_SHIPPER })),
        ...[1, 2, 3, 4, 5].map((number) => arrival(number, { shipper: 22 })),
      ]),
      '10 lines came twice for 1 kills of the shipper',
    ],
    ['a spool that is not empty', { ...GOOD, left: 4 }, '4 lines are still in the spool'],
    ['a collector that nobody killed', { ...GOOD, processes: PROCESSES.slice(1) }, 'no collector was killed'],
    ['an outage that nobody noticed', { ...GOOD, retries: 0 }, 'no request was ever repeated'],
    [
      'a process that runs',
      { ...GOOD, processes: [...PROCESSES, fate('shipper', { pid: 7, isRunning: true })] },
      'shipper (pid 7) still runs',
    ],
    [
      'a process that failed',
      { ...GOOD, processes: [...PROCESSES, fate('shipper', { end: { code: 3, signal: null } })] },
      'shipper ended with exit code 3',
    ],
  ])('finds %s', (_what, result, complaint) => {
    expect(selfCheck(result)).toContain(complaint);
  });
});
