import { outOfRange, wrongValue } from '../../core/errors.ts';
import { LAST_DATE_MS, SECOND_MS } from '../../core/units.ts';
import { requireFiniteNumber, requireString } from '../../core/validate.ts';
import { parseGoDuration } from '../go-text.ts';
import { TimeZone, WallSchedule, type CronFields } from './wall-schedule.ts';

/** A parsed cron spec. */
export interface CronSpec {
  /** The spec, without blanks around it. */
  readonly text: string;
  /** Its time zone: the one in the spec, else the default that was passed. */
  readonly location: string;
  /**
   * Returns the first tick later than `afterMs`, both in milliseconds since the epoch; undefined if there is none before the year
   * 3000. Takes about 10 µs; in a time zone about 30 µs, and 1 ms a day before the clocks change; for a spec without ticks 10 ms.
   *
   * @throws RangeError `ERR_OUT_OF_RANGE` - `afterMs` is not the time of a date.
   */
  next(afterMs: number): number | undefined;
}

const NICKNAMES = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const EVERY = '@every ';

/** Ticks are computed until the year 3000. */
const END_MS = Date.UTC(3_000, 0);

/** Longest spec, in characters. A list of every number of every field takes about 400. */
const MAX_LENGTH = 1_000;

/**
 * Parses a cron spec, as asynq does: five fields, a nickname, or an interval, optionally with a time zone before it.
 *
 * | spec | ticks |
 * |---|---|
 * | `0/15 9-17 * * mon-fri` | each quarter of the hours from 9 to 17, on weekdays |
 * | `30 4 1,15 * 5` | at 4:30, on the 1st, the 15th and every Friday: one is enough if both kinds of days are given |
 * | `@yearly` `@annually` `@monthly` `@weekly` `@daily` `@midnight` `@hourly` | when one begins |
 * | `@every 1h30m` | at the multiples of the interval since the epoch, in UTC; in whole seconds, at least one |
 * | `CRON_TZ=Asia/Tokyo 0 6 * * *` (or `TZ=`) | at 6 in Tokyo |
 *
 * When clocks are changed: a skipped time has no tick; a repeated one has one tick, at the first time, unless the hour is `*`, which
 * has ticks at both.
 *
 * @param location - the time zone, if the spec has none.
 * @throws TypeError `ERR_INVALID_ARG_VALUE` - the spec is not valid, or longer than 1 000 characters; or there is no such time zone.
 *
 * @example
 * ```ts
 * new Date(parseCronSpec('@hourly').next(Date.now()) ?? NaN);
 * ```
 */
export function parseCronSpec(spec: string, location = 'UTC'): CronSpec {
  requireString('cronSpec', spec);
  requireString('location', location);
  const text = spec.trim();
  if (text.length > MAX_LENGTH) throw wrong(`of at most ${MAX_LENGTH} characters`, spec);
  const prefix = /^(?:CRON_)?TZ=(\S*)(?:\s+|$)/.exec(text);
  const zoneName = prefix?.[1];
  const zone = zoneName === undefined ? new TimeZone('location', location) : zoneOfSpec(text, zoneName);
  const next = nextOf(text, text.slice(prefix?.[0].length ?? 0), zone);
  return {
    ...{ text, location: zone.name },
    next: (afterMs) => {
      requireFiniteNumber('afterMs', afterMs);
      if (Math.abs(afterMs) > LAST_DATE_MS) throw outOfRange('afterMs', 'the time of a date', afterMs);
      return next(afterMs);
    },
  };
}

function nextOf(spec: string, body: string, zone: TimeZone): CronSpec['next'] {
  if (body.startsWith(EVERY)) return intervalOf(spec, body.slice(EVERY.length).trim());
  const nicknamed = NICKNAMES.get(body);
  if (body.startsWith('@') && nicknamed === undefined) {
    throw wrong(`with ${[...NICKNAMES.keys()].join(', ')} or @every DURATION`, spec);
  }
  const fields = readCronFields(nicknamed ?? body);
  if (typeof fields === 'string') throw wrong(fields, spec);
  const schedule = new WallSchedule(fields, zone);
  return (afterMs) => (afterMs < END_MS ? schedule.next(afterMs) : undefined);
}

/**
 * The ticks are the multiples of a whole number of seconds since the epoch, in UTC. So all schedulers agree on them, whenever they
 * were started. (asynq counts from the start of each scheduler.)
 */
function intervalOf(spec: string, text: string): CronSpec['next'] {
  const durationMs = parseGoDuration(text);
  if (durationMs === undefined || durationMs < 0) {
    throw wrong(`with a duration such as 1h30m after @every, not '${text}'`, spec);
  }
  const intervalMs = Math.max(Math.floor(durationMs / SECOND_MS), 1) * SECOND_MS; // at least 1 s, as asynq
  return (afterMs) => {
    const nextMs = (Math.floor(afterMs / intervalMs) + 1) * intervalMs;
    return nextMs <= LAST_DATE_MS ? nextMs : undefined;
  };
}

function zoneOfSpec(spec: string, name: string): TimeZone {
  try {
    return new TimeZone('cronSpec', name);
  } catch {
    throw wrong(`with a known time zone, not '${name}'`, spec);
  }
}

function wrong(requirement: string, spec: string): Error {
  return wrongValue('cronSpec', `a cron spec ${requirement}`, spec);
}

/** Allowed values of a field. */
interface FieldRule {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly words: readonly string[];
}

/** A parsed field: its numbers in order, and whether all are allowed (`*`, `?`). */
interface Field {
  readonly values: readonly number[];
  readonly isOpen: boolean;
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const RULES: readonly FieldRule[] = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day of month', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of week', min: 0, max: 6, words: WEEKDAYS },
];

const HOUR = 1;

/**
 * Parses five fields by the rules of robfig/cron's standard parser, which asynq uses, and which differ from most others: `5/15` is
 * from 5 on, every 15; `?` is `*` in any field; Sunday is 0 and never 7; there are no L, W and #; `*` with a step of more than 1 is a
 * list of values, which matters if both kinds of days are given.
 *
 * @returns for an invalid field a requirement, as the end of a sentence that begins with "a cron spec".
 */
function readCronFields(text: string): CronFields | string {
  const parts = text.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== RULES.length) {
    return `of five fields (minute, hour, day of month, month, day of week), not ${parts.length}`;
  }
  const fields: Field[] = [];
  for (const [at, rule] of RULES.entries()) {
    const field = readField(parts[at] ?? '', rule);
    if (typeof field === 'string') return field;
    fields.push(field);
  }
  return {
    text: fields.map(({ values, isOpen }) => (isOpen ? '*' : values.join(','))).join(' '),
    isEveryHour: fields[HOUR]?.isOpen === true,
  };
}

function readField(text: string, rule: FieldRule): Field | string {
  const values = new Set<number>();
  let isOpen = false;
  for (const piece of text.split(',')) {
    const span = readSpan(piece, rule);
    if (typeof span === 'string') return `whose ${rule.name} ${span}`;
    for (let value = span.from; value <= span.to; value += span.step) values.add(value);
    isOpen ||= span.isOpen;
  }
  return { values: [...values].sort((a, b) => a - b), isOpen };
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly isOpen: boolean;
}

/** Parses `*`, `?`, `5` or `5-10`, optionally with a step. */
function readSpan(text: string, rule: FieldRule): Span | string {
  const { min, max } = rule;
  const [range = '', stepText, ...more] = text.split('/');
  if (more.length > 0) return `has at most one step, not '${text}'`;
  const step = stepText === undefined ? 1 : readNumber(stepText);
  if (step === undefined || step < 1) return `has a step of 1 or more, not '${text}'`;
  if (range === '*' || range === '?') return { from: min, to: max, step, isOpen: step === 1 };
  const [first = '', last, ...rest] = range.split('-');
  const from = readValue(first, rule);
  const to = last === undefined ? (stepText === undefined ? from : max) : readValue(last, rule);
  if (from === undefined || to === undefined || rest.length > 0) return `is ${describe(rule)}, not '${text}'`;
  if (from > to) return `is an ascending range, not '${text}'`;
  return { from, to, step, isOpen: false };
}

function readValue(text: string, { min, max, words }: FieldRule): number | undefined {
  const word = words.indexOf(text.toLowerCase());
  if (word !== -1) return min + word;
  const value = readNumber(text);
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

function readNumber(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function describe({ min, max, words }: FieldRule): string {
  const names = words.length === 0 ? '' : ` or ${words[0] ?? ''}-${words.at(-1) ?? ''}`;
  return `from ${min} to ${max}${names}`;
}
