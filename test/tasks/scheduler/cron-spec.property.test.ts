import fc from 'fast-check';
import { expect } from 'vitest';
import { parseCronSpec } from '../../../src/tasks/scheduler/cron-spec.ts';
import { testProperty } from '../../runs.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Choices of one field: what is written, and which numbers that is, or undefined for all. */
interface Choice {
  readonly text: string;
  readonly values: readonly number[] | undefined;
}

function field(min: number, max: number): fc.Arbitrary<Choice> {
  const value = fc.integer({ min, max });
  const all = Array.from({ length: max - min + 1 }, (_, at) => min + at);
  const list = fc.uniqueArray(value, { minLength: 1, maxLength: 4 });
  return fc.oneof(
    fc.constantFrom('*', '?', '*/1').map((text) => ({ text, values: undefined })),
    list.map((values) => ({ text: values.join(','), values })),
    fc.tuple(value, value).map(([a, b]) => {
      const [from, to] = a < b ? [a, b] : [b, a];
      return { text: `${from}-${to}`, values: all.filter((one) => one >= from && one <= to) };
    }),
    fc.tuple(value, fc.integer({ min: 2, max: 9 })).map(([from, step]) => ({
      text: `${from}/${step}`,
      values: all.filter((one) => one >= from && (one - from) % step === 0),
    })),
    fc.integer({ min: 2, max: 9 }).map((step) => ({
      text: `*/${step}`,
      values: all.filter((one) => (one - min) % step === 0),
    })),
  );
}

/** Short spans are searched minute by minute, so days and months are chosen more rarely. */
const someDay = (min: number, max: number): fc.Arbitrary<Choice> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant({ text: '*', values: undefined }) }, field(min, max));

const CHOICES = fc.tuple(field(0, 59), field(0, 23), someDay(1, 31), someDay(1, 12), someDay(0, 6));

type Choices = readonly [Choice, Choice, Choice, Choice, Choice];

const has = ({ values }: Choice, value: number): boolean => values?.includes(value) ?? true;

/** The time on the wall, read from what the host prints. */
function wallAt(format: Intl.DateTimeFormat, atMs: number): Date {
  return new Date(`${format.format(atMs).replace(' ', 'T')}Z`);
}

function wallFormat(timeZone: string): Intl.DateTimeFormat {
  // Swedish dates are 2026-11-21 13:57:21.
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
}

function matches([minute, hour, day, month, weekday]: Choices, wall: Date): boolean {
  if (!has(minute, wall.getUTCMinutes()) || !has(hour, wall.getUTCHours())) return false;
  if (!has(month, wall.getUTCMonth() + 1)) return false;
  const isDay = has(day, wall.getUTCDate());
  const isWeekday = has(weekday, wall.getUTCDay());
  const isEither = day.values !== undefined && weekday.values !== undefined;
  return isEither ? isDay || isWeekday : isDay && isWeekday;
}

/** Minute by minute; what the wall has shown in the 3 hours before is a second time. */
function naiveNext(
  choices: Choices,
  format: Intl.DateTimeFormat,
  afterMs: number,
  untilMs: number,
): number | undefined {
  const firstMs = (Math.floor(afterMs / MINUTE_MS) + 1) * MINUTE_MS;
  const shown = new Set<number>();
  for (let atMs = firstMs - 3 * HOUR_MS; atMs <= untilMs; atMs += MINUTE_MS) {
    const wall = wallAt(format, atMs);
    const isSecond = shown.has(wall.getTime());
    shown.add(wall.getTime());
    if (atMs < firstMs || (isSecond && choices[1].values !== undefined)) continue;
    if (matches(choices, wall)) return atMs;
  }
  return undefined;
}

const ZONES = [
  'UTC',
  'America/New_York',
  'Australia/Lord_Howe',
  'Europe/London',
  'Asia/Kolkata',
  'Atlantic/Azores',
];

/** Around the days when clocks are changed, and any day. */
const MOMENTS = fc.oneof(
  fc.date({ min: new Date('1999-01-01'), max: new Date('2037-01-01'), noInvalidDate: true }).map(Number),
  fc
    .tuple(
      fc.constantFrom(
        '2026-03-08T07:00Z',
        '2026-11-01T06:00Z',
        '2026-03-29T01:00Z',
        '2026-10-25T01:00Z',
        '2026-04-04T15:00Z',
        '2026-10-03T15:30Z',
      ),
      fc.integer({ min: -30 * HOUR_MS, max: 4 * HOUR_MS }),
    )
    .map(([change, offsetMs]) => Date.parse(change) + offsetMs),
);

const SPAN_MS = 36 * HOUR_MS;

const formats = new Map(ZONES.map((zone) => [zone, wallFormat(zone)]));
testProperty(
  'the next tick is later and matches the fields, and no earlier time does',
  fc.property(CHOICES, fc.constantFrom(...ZONES), MOMENTS, (choices, zone, afterMs) => {
    const format = formats.get(zone);
    if (format === undefined) throw new Error('no such zone');
    const spec = parseCronSpec(choices.map(({ text }) => text).join(' '), zone);
    const nextMs = spec.next(afterMs);
    const expectedMs = naiveNext(choices, format, afterMs, afterMs + SPAN_MS);
    if (expectedMs !== undefined || (nextMs !== undefined && nextMs <= afterMs + SPAN_MS)) {
      expect(nextMs).toBe(expectedMs);
    } else if (nextMs !== undefined) {
      // Too far away to be searched for: it fits, at least.
      expect(matches(choices, wallAt(format, nextMs))).toBe(true);
    }
  }),
);

testProperty(
  'consecutive ticks are also found from any time between them',
  fc.property(
    CHOICES,
    fc.constantFrom(...ZONES),
    MOMENTS,
    fc.double({ min: 0, max: 1, noNaN: true }),
    (choices, zone, afterMs, share) => {
      const spec = parseCronSpec(choices.map(({ text }) => text).join(' '), zone);
      const nextMs = spec.next(afterMs);
      if (nextMs === undefined) return;
      expect(nextMs).toBeGreaterThan(afterMs);
      const betweenMs = afterMs + (nextMs - afterMs) * share;
      if (betweenMs < nextMs) expect(spec.next(betweenMs)).toBe(nextMs);
      expect(spec.next(nextMs) ?? Infinity).toBeGreaterThan(nextMs);
    },
  ),
  1_000,
);
