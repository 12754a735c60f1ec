import { describe, expect, it } from 'vitest';
import { parseCronSpec } from '../../../src/tasks/scheduler/cron-spec.ts';

/** The next ticks, without seconds. */
function ticks(spec: string, from: string, count: number, location?: string): string {
  const schedule = parseCronSpec(spec, location);
  const found: string[] = [];
  let atMs: number | undefined = Date.parse(from);
  while (found.length < count && (atMs = schedule.next(atMs)) !== undefined) {
    found.push(new Date(atMs).toISOString().replace(':00.000Z', ''));
  }
  return found.join(' ');
}

/** A spec, the time after which it ticks, its next ticks in UTC, and a time zone. */
type Row = readonly [spec: string, from: string, expected: string, location?: string];

/** @param name - a sentence; the row is added to it. */
function ticksOf(name: string, rows: readonly Row[]): void {
  for (const [spec, from, expected, location] of rows) {
    it(`${name}: after ${from}, '${spec}' ticks at ${expected}`, () => {
      expect(ticks(spec, `${from}Z`, expected.split(' ').length, location)).toBe(expected);
    });
  }
}

describe('a cron spec of five fields', () => {
  ticksOf('a spec ticks at the first minute that its fields match', [
    ['* * * * *', '2026-11-21T13:57:21', '2026-11-21T13:58'],
    ['*/15 * * * *', '2026-11-21T13:57:21', '2026-11-21T14:00'],
    ['5/15 * * * *', '2026-11-21T13:51', '2026-11-21T14:05'],
    ['20-35/15 * * * *', '2026-11-21T13:20', '2026-11-21T13:35'],
    ['0 9-17 * * MON-FRI', '2026-11-20T17:00', '2026-11-23T09:00'],
    ['0 0 1 jan,Jul ?', '2026-11-21T00:00', '2027-01-01T00:00'],
    ['30 4 * * 0', '2026-11-21T00:00', '2026-11-22T04:30'],
    ['0 0 ? * sat', '2026-11-21T00:00', '2026-11-28T00:00'],
    ['? ? * * *', '2026-11-21T13:57', '2026-11-21T13:58'],
    ['  0   12  *  *  * ', '2026-11-21T13:57', '2026-11-22T12:00'],
    ['59 23 31 12 *', '2026-12-31T23:58:59.999', '2026-12-31T23:59'],
    ['59 23 31 12 *', '2026-12-31T23:59', '2027-12-31T23:59'],
    ['0 0 31 * *', '2026-01-31T00:00', '2026-03-31T00:00'],
  ]);

  ticksOf('either kind of day is enough if both are given, and both must match if one is *', [
    ['0 0 13 * fri', '2026-11-01T00:00', '2026-11-06T00:00 2026-11-13T00:00 2026-11-20T00:00'],
    ['0 0 */1 * fri', '2026-11-01T00:00', '2026-11-06T00:00 2026-11-13T00:00'],
    ['0 0 *,2 * fri', '2026-11-01T00:00', '2026-11-06T00:00 2026-11-13T00:00'],
    // A step is a choice, as in robfig/cron: the odd days and the Fridays.
    ['0 0 */2 * fri', '2026-11-04T00:00', '2026-11-05T00:00 2026-11-06T00:00 2026-11-07T00:00'],
    ['0 0 1-31 * fri', '2026-11-01T00:00', '2026-11-02T00:00 2026-11-03T00:00'],
  ]);

  ticksOf('leap years are respected, and 2100 is not one', [
    ['0 0 29 2 *', '2026-11-21T00:00', '2028-02-29T00:00 2032-02-29T00:00'],
    ['0 0 29 2 *', '2096-02-29T00:00', '2104-02-29T00:00'],
    ['0 0 29 feb *', '2096-03-01T00:00', '2104-02-29T05:00', 'America/New_York'],
  ]);

  it.each(['0 0 30 2 *', '0 0 31 4,6,9,11 *', 'TZ=Europe/Berlin 0 0 30 2 *'])(
    'a day that never comes has no next tick: %s',
    (spec) => {
      expect(parseCronSpec(spec).next(Date.UTC(2026, 10, 21))).toBeUndefined();
    },
  );

  ticksOf('a nickname stands for five fields', [
    ['@yearly', '2026-11-21T13:57:21', '2027-01-01T00:00'],
    ['@annually', '2026-11-21T13:57:21', '2027-01-01T00:00'],
    ['@monthly', '2026-11-21T13:57:21', '2026-12-01T00:00'],
    ['@weekly', '2026-11-21T13:57:21', '2026-11-22T00:00'],
    ['@daily', '2026-11-21T13:57:21', '2026-11-22T00:00'],
    ['@midnight', '2026-11-21T13:57:21', '2026-11-22T00:00'],
    ['@hourly', '2026-11-21T13:57:21', '2026-11-21T14:00'],
  ]);
});

describe('an interval', () => {
  ticksOf('an interval ticks at its multiples since the epoch', [
    ['@every 1h30m', '2026-11-21T13:57:21', '2026-11-21T15:00 2026-11-21T16:30'],
  ]);

  it.each([
    ['@every 7s', 1_000, 7_000],
    ['@every 7s', 6_999.5, 7_000],
    ['@every 7s', 7_000, 14_000],
    ['@every 300ms', 0, 1_000],
    ['@every 0s', 0, 1_000],
    ['@every 1.9s', 0, 1_000],
    ['@every   2m', 0, 120_000],
  ])(
    'the interval %s, which is whole seconds and at least one, ticks after %d ms at %d ms',
    (spec, at, next) => {
      expect(parseCronSpec(spec).next(at)).toBe(next);
    },
  );
});

describe('a time zone', () => {
  ticksOf('the time zone is that of the spec, else the one that was passed, else UTC', [
    ['0 6 * * *', '2026-11-21T00:00', '2026-11-21T06:00'],
    ['0 6 * * *', '2026-11-21T00:00', '2026-11-21T05:00', 'Europe/Berlin'],
    ['CRON_TZ=Asia/Tokyo 0 6 * * *', '2026-11-21T00:00', '2026-11-21T21:00', 'Europe/Berlin'],
    ['TZ=Asia/Kolkata  @daily', '2026-11-21T00:00', '2026-11-21T18:30'],
  ]);

  it('a spec has its time zone apart from its text', () => {
    expect(parseCronSpec(' TZ=Asia/Tokyo 0 6 * * * ')).toMatchObject({
      text: 'TZ=Asia/Tokyo 0 6 * * *',
      location: 'Asia/Tokyo',
    });
  });
});

it.each([
  ['30 1 1 11 *', 'America/New_York', '2026-11-01T05:30'],
  ['0 0 1 1 *', 'Pacific/Kiritimati', '2026-12-31T10:00'],
  ['0 0 1 1 *', 'Pacific/Pago_Pago', '2026-01-01T11:00'],
  ['* * 29 3 *', 'Europe/London', '2026-03-29T00:00'],
  ['0 12 31 12 *', 'europe/london', '2026-12-31T12:00'],
])('the next tick of %s in %s is found, whatever its offset is', (spec, zone, next) => {
  const nextMs = Date.parse(`${next}Z`);
  for (const from of ['2026-01-01T10:30:00Z', nextMs - 25 * 3_600_000, nextMs - 1]) {
    expect(ticks(spec, new Date(from).toISOString(), 1, zone)).toBe(next);
  }
});

// 2026-03-08, 2:00 EST → 3:00 EDT; 2026-11-01, 2:00 EDT → 1:00 EST.
const NEW_YORK = 'America/New_York';

describe('when clocks go forward', () => {
  ticksOf('a skipped time has no tick', [
    ['30 2 * * *', '2026-03-07T00:00', '2026-03-07T07:30 2026-03-09T06:30 2026-03-10T06:30', NEW_YORK],
    ['30 2,3 * * *', '2026-03-08T06:00', '2026-03-08T07:30 2026-03-09T06:30', NEW_YORK],
    // Only on that day: it waits for the next year.
    ['30 2 8 3 *', '2025-06-01T00:00', '2027-03-08T07:30', NEW_YORK],
  ]);

  ticksOf('every hour and every five minutes have each tick once', [
    ['0 * * * *', '2026-03-08T05:30', '2026-03-08T06:00 2026-03-08T07:00 2026-03-08T08:00', NEW_YORK],
    ['*/5 * * * *', '2026-03-08T06:50', '2026-03-08T06:55 2026-03-08T07:00 2026-03-08T07:05', NEW_YORK],
  ]);

  ticksOf('a midnight or a day that does not exist has no tick', [
    ['@daily', '2018-11-03T12:00', '2018-11-05T02:00 2018-11-06T02:00', 'America/Sao_Paulo'],
    // Samoa had no 30th of December 2011.
    ['0 12 * * *', '2011-12-29T00:00', '2011-12-29T22:00 2011-12-30T22:00 2011-12-31T22:00', 'Pacific/Apia'],
  ]);
});

describe('when clocks go back', () => {
  ticksOf('a repeated time has one tick, at the first time', [
    ['30 1 * * *', '2026-10-31T00:00', '2026-10-31T05:30 2026-11-01T05:30 2026-11-02T06:30', NEW_YORK],
    [
      '30 0-3 * * *',
      '2026-11-01T04:00',
      '2026-11-01T04:30 2026-11-01T05:30 2026-11-01T07:30 2026-11-01T08:30',
      NEW_YORK,
    ],
    // Asked in the hour between: the second 1:30 is none of its ticks.
    ['30 1 * * *', '2026-11-01T06:10', '2026-11-02T06:30', NEW_YORK],
    ['*/20 1 * * *', '2026-11-01T05:30', '2026-11-01T05:40 2026-11-02T06:00', NEW_YORK],
  ]);

  ticksOf('an hour of * has ticks at both times', [
    [
      '0 * * * *',
      '2026-11-01T04:30',
      '2026-11-01T05:00 2026-11-01T06:00 2026-11-01T07:00 2026-11-01T08:00',
      NEW_YORK,
    ],
    [
      '*/30 * * * *',
      '2026-11-01T05:00',
      '2026-11-01T05:30 2026-11-01T06:00 2026-11-01T06:30 2026-11-01T07:00',
      NEW_YORK,
    ],
  ]);

  // Troll: 2026-10-25, 3:00 (+2) → 1:00 (+0).
  ticksOf('clocks that go back by two hours follow the same rules', [
    ['30 2 * * *', '2026-10-24T12:00', '2026-10-25T00:30 2026-10-26T02:30', 'Antarctica/Troll'],
  ]);

  // Lord Howe: 2026-04-05, 2:00 (+11) → 1:30 (+10:30).
  ticksOf('clocks that go back by half an hour follow the same rules', [
    ['45 1 * * *', '2026-04-04T00:00', '2026-04-04T14:45 2026-04-05T15:15', 'Australia/Lord_Howe'],
    [
      '45 * * * *',
      '2026-04-04T14:00',
      '2026-04-04T14:45 2026-04-04T15:15 2026-04-04T16:15',
      'Australia/Lord_Howe',
    ],
  ]);
});

it.each([
  ['', 'five fields'],
  ['* * * *', 'not 4'],
  ['0 * * * * *', 'not 6'],
  ['60 * * * *', 'minute is from 0 to 59'],
  ['* 24 * * *', 'hour is from 0 to 23'],
  ['* * 0 * *', 'day of month is from 1 to 31'],
  ['* * 32 * *', 'day of month is from 1 to 31'],
  ['* * * 13 *', 'month is from 1 to 12 or jan-dec'],
  ['* * * * 7', 'day of week is from 0 to 6 or sun-sat'],
  ['* * * * monday', 'day of week'],
  ['* * * * fri-mon', 'an ascending range'],
  ['* * L * *', 'day of month'],
  ['* * 15W * *', 'day of month'],
  ['* * * * 5#2', 'day of week'],
  ['* * * * friL', 'day of week'],
  ['10-5 * * * *', 'an ascending range'],
  ['1-2-3 * * * *', 'minute'],
  ['*-5 * * * *', 'minute'],
  ['*/0 * * * *', 'step'],
  ['*/-1 * * * *', 'step'],
  ['*/x * * * *', 'step'],
  ['1/2/3 * * * *', 'at most one step'],
  ['1, * * * *', 'minute'],
  ['+5 * * * *', 'minute'],
  ['1.5 * * * *', 'minute'],
  ['mon * * * *', 'minute'],
  ['@reboot', 'with @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every DURATION'],
  ['@Daily', 'with @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every DURATION'],
  ['@every', 'with @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every DURATION'],
  ['@every x', "not 'x'"],
  ['@every -5s', "not '-5s'"],
  ['@every 1h 30m', "not '1h 30m'"],
  ['TZ=Mars/Olympus * * * * *', "not 'Mars/Olympus'"],
  ['TZ= * * * * *', "not ''"],
  ['CRON_TZ=UTC', 'five fields'],
  ['tz=UTC * * * * *', 'not 6'],
])('the spec %j throws a TypeError with the value received', (spec, told) => {
  expect(() => parseCronSpec(spec)).toThrow(told);
  expect(() => parseCronSpec(spec)).toThrow(`Received '${spec}'`);
  expect(() => parseCronSpec(spec)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }));
});

it('a spec of more than 1 000 characters throws a TypeError', () => {
  const minutes = (length: number): string => `${'0'.padEnd(length - 8, ',0')} * * * *`;
  expect(parseCronSpec(minutes(999)).text).toHaveLength(999);
  expect(() => parseCronSpec(minutes(1_001))).toThrow('a cron spec of at most 1000 characters');
});

it('an unknown location throws a TypeError', () => {
  expect(() => parseCronSpec('@daily', 'Mars')).toThrow('location must be a time zone');
  expect(() => parseCronSpec(5 as unknown as string)).toThrow('cronSpec must be a string');
  expect(() => parseCronSpec('@daily', 5 as unknown as string)).toThrow('location must be a string');
});

describe('the time after which a tick is searched', () => {
  const SPECS = ['* * * * *', 'TZ=Europe/Berlin 0 0 * * *', '@every 1h'];

  it.each(SPECS)('the ticks of %s are searched only after the time of a date', (spec) => {
    const schedule = parseCronSpec(spec);
    for (const afterMs of [NaN, Infinity, -Infinity, 8.64e15 + 1, 1e300]) {
      expect(() => schedule.next(afterMs)).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }));
    }
  });

  it.each(SPECS)('there is no tick of %s after the last date', (spec) => {
    expect(parseCronSpec(spec).next(8.64e15)).toBeUndefined();
  });
});
