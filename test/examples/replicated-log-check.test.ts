import { describe, expect, it } from 'vitest';
import type { Ack } from '../../examples/replicated-log/clients/produce-load.ts';
import type { ExampleResult } from '../../examples/replicated-log/example-result.ts';
import { checkProcesses, selfCheck } from '../../examples/replicated-log/self-check.ts';
import type { LeaderStatus, PurgatoryStatus } from '../../examples/replicated-log/wire.ts';

const ACK: Ack = {
  acks: 'all',
  partition: 0,
  firstOffset: 0,
  values: ['a', 'b'],
  inSync: ['leader', 'follower-2'],
  sentAtMs: 10,
  ackedAtMs: 20,
};
const LATER: Ack = { ...ACK, firstOffset: 2, values: ['c'], sentAtMs: 30, ackedAtMs: 40 };

function purgatory(changes: Partial<PurgatoryStatus> = {}): PurgatoryStatus {
  const completed = { tried: 2, forced: 0, expired: 0, closed: 0 };
  return { watched: 0, numDelayed: 0, watchedKeys: 0, completed, missedTriggers: 0, ...changes };
}

function status(changes: Partial<LeaderStatus['purgatories']> = {}, errors: string[] = []): LeaderStatus {
  const sessions = purgatory({ completed: { tried: 9, forced: 0, expired: 1, closed: 0 } });
  const none = purgatory();
  return {
    members: [],
    partitions: [],
    purgatories: { produce: none, fetch: none, sessions, inSync: none, ...changes },
    errors,
  };
}

/** A run in which all is well. */
const GOOD: ExampleResult = {
  options: { durationMs: 1_000, ratePerSecond: 2, consumers: 1, partitions: 1 },
  minInSync: 2,
  counts: { sent: 2, sentAll: 2, acknowledged: 2, timedOut: 0, refused: 0, failed: 0 },
  acks: [ACK, LATER],
  latenciesMs: [10, 10],
  namedBehind: new Map(),
  logs: [['a', 'b', 'c']],
  consumers: [{ partition: 0, values: ['a', 'b', 'c'], polls: 1, shortPolls: 0, complaints: [] }],
  copies: [
    {
      member: 'follower-2',
      startedAtMs: 0,
      partitions: [{ values: ['a', 'b', 'c'], appendedAtMs: [11, 12, 31] }],
    },
  ],
  outage: {
    member: 'follower-1',
    end: { code: null, signal: 'SIGKILL' },
    droppedAfterMs: 1,
    rejoinedAfterMs: 1,
  },
  afterwards: status(),
  mostWatched: { produce: 1, fetch: 1 },
};

const [COPY] = GOOD.copies;
const [CONSUMER] = GOOD.consumers;
const LATE = { values: ['a', 'b', 'c'], appendedAtMs: [11, 21, 31] };

describe('the self-check', () => {
  it('has nothing to say of a run in which all is well', () => {
    expect(selfCheck(GOOD)).toEqual([]);
  });

  it.each<[string, Partial<ExampleResult>, string]>([
    ['a record that was lost', { logs: [['a', 'x', 'c']] }, 'acknowledged and not readable at offset 0'],
    ['a record that is there twice', { logs: [['a', 'b', 'c', 'a']] }, '1 records are readable twice'],
    [
      'an order that was not the clients’',
      { acks: [{ ...ACK, sentAtMs: 50, ackedAtMs: 60 }, LATER] },
      'out of order at offset 2',
    ],
    [
      'a consumer that missed a record',
      { consumers: [{ partition: 0, polls: 1, shortPolls: 0, complaints: [], values: ['a', 'c'] }] },
      'did not read what is in the log',
    ],
    [
      'a read above the high watermark',
      { consumers: CONSUMER === undefined ? [] : [{ ...CONSUMER, complaints: ['above'] }] },
      'above',
    ],
    [
      'a follower that has less',
      { copies: [{ member: 'f', startedAtMs: 0, partitions: [] }] },
      'the copy of partition 0 on f',
    ],
    [
      'too few replicas',
      { acks: [{ ...ACK, inSync: ['leader'] }, LATER] },
      'acknowledged with 1 replicas of 2',
    ],
    [
      'an acknowledgement that came too early',
      { copies: COPY === undefined ? [] : [{ ...COPY, partitions: [LATE] }] },
      'acknowledged before follower-2 had it: offset 0',
    ],
    ['a request that failed', { counts: { ...GOOD.counts, failed: 1 } }, '1 produces failed'],
    ['an operation that threw', { afterwards: status({}, ['Error: x']) }, 'threw: Error: x'],
    [
      'an operation that nobody answered',
      { counts: { ...GOOD.counts, sentAll: 3 } },
      '2 produces completed in the leader; the clients sent 3',
    ],
    [
      'a timeout that the leader does not know',
      { counts: { ...GOOD.counts, timedOut: 1 } },
      '0 produces expired in the leader, 1 in the eyes',
    ],
    [
      'what is still watched',
      { afterwards: status({ fetch: purgatory({ watched: 1 }) }) },
      'left in purgatory fetch',
    ],
    [
      'a trigger that is missing',
      { afterwards: status({ fetch: purgatory({ missedTriggers: 2 }) }) },
      '2 operations of purgatory fetch expired although',
    ],
    ['a session that did not expire', { afterwards: status({ sessions: purgatory() }) }, 'no session'],
    [
      'an outage that was none',
      { outage: { ...GOOD.outage, end: { code: 0, signal: null } } },
      'was not killed',
    ],
  ])('complains of %s', (_, changes, complaint) => {
    const complaints = selfCheck({ ...GOOD, ...changes });

    expect(complaints.join('\n')).toContain(complaint);
  });

  it('complains of processes that run, that failed, and that had to be killed beside the one', () => {
    const end = { code: 0, signal: null };
    const killed = { name: 'k', pid: 1, isRunning: false, end: { code: null, signal: 'SIGKILL' } };

    expect(checkProcesses([killed, { name: 'good', pid: 2, isRunning: false, end }])).toEqual([]);
    expect(
      checkProcesses([
        killed,
        { ...killed, name: 'stubborn' },
        { name: 'alive', pid: 3, isRunning: true, end },
        { name: 'broken', pid: 4, isRunning: false, end: { code: 1, signal: null } },
      ]),
    ).toEqual(['alive (pid 3) still runs', 'broken ended with exit code 1', 'stubborn had to be killed']);
  });
});
