import { wrongType, wrongValue } from '../core/errors.ts';
import { readCronFields } from './cron/cron-fields.ts';
import { IntervalSchedule } from './cron/interval-schedule.ts';
import { TimeZone } from './cron/time-zone.ts';
import { WallSchedule } from './cron/wall-schedule.ts';
import { parseGoDuration } from './go-text.ts';

/** A cron spec that was read. */
export interface CronSpec {
  /** As it was given, but for blanks around it. */
  readonly text: string;
  /** The time zone it goes by: its own, or else the one that was given for it. */
  readonly location: string;
  /**
   * The first tick later than a moment, both in milliseconds since the epoch; undefined if there is none before the year
   * 3000. Some 10 µs; in a time zone some 30 µs, and 1 ms a day before the clocks change; a spec that never comes, some 10 ms.
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

/** In characters. A list of every number of every field takes some 400. */
const MAX_LENGTH = 1_000;

/**
 * Reads a cron spec, as asynq does: five fields, a nickname, or an interval, and maybe a time zone before it.
 *
 * | spec | ticks |
 * |---|---|
 * | `0/15 9-17 * * mon-fri` | each quarter of the hours from 9 to 17, on weekdays |
 * | `30 4 1,15 * 5` | at 4:30, on the 1st, the 15th and every Friday: either will do if both kinds of days are chosen |
 * | `@yearly` `@annually` `@monthly` `@weekly` `@daily` `@midnight` `@hourly` | when one begins |
 * | `@every 1h30m` | at the multiples of that since the epoch, by UTC; in whole seconds, one at least |
 * | `CRON_TZ=Asia/Tokyo 0 6 * * *` (or `TZ=`) | at 6 in Tokyo |
 *
 * Where clocks are changed: a time that is skipped does not run; one that is repeated runs once, the first time, unless
 * the hour is `*`, which goes on through both.
 *
 * @param location - the time zone, if the spec names none.
 * @throws TypeError `ERR_INVALID_ARG_VALUE` - it is no such spec, or is longer than 1 000 characters: the message says
 * why; or there is no such time zone.
 *
 * @example
 * ```ts
 * new Date(parseCronSpec('@hourly').next(Date.now()) ?? NaN);
 * ```
 */
export function parseCronSpec(spec: string, location = 'UTC'): CronSpec {
  if (typeof spec !== 'string') throw wrongType('cronSpec', 'a string', spec);
  if (typeof location !== 'string') throw wrongType('location', 'a string', location);
  const text = spec.trim();
  if (text.length > MAX_LENGTH) throw wrong(`of at most ${MAX_LENGTH} characters`, spec);
  const prefix = /^(?:CRON_)?TZ=(\S*)(?:\s+|$)/.exec(text);
  const zoneName = prefix?.[1];
  const zone = zoneName === undefined ? new TimeZone('location', location) : zoneOfSpec(text, zoneName);
  const schedule = scheduleOf(text, text.slice(prefix?.[0].length ?? 0), zone);
  return { text, location: zone.name, next: (afterMs) => schedule.next(afterMs) };
}

function scheduleOf(spec: string, body: string, zone: TimeZone): WallSchedule | IntervalSchedule {
  if (body.startsWith(EVERY)) return intervalOf(spec, body.slice(EVERY.length).trim());
  const fields = readCronFields(NICKNAMES.get(body) ?? body);
  if (body.startsWith('@') && !NICKNAMES.has(body)) throw wrong(`of a known name, not '${body}'`, spec);
  if (typeof fields === 'string') throw wrong(fields, spec);
  return new WallSchedule(fields, zone);
}

function intervalOf(spec: string, text: string): IntervalSchedule {
  const durationMs = parseGoDuration(text);
  if (durationMs === undefined || durationMs < 0) {
    throw wrong(`with a duration such as 1h30m after @every, not '${text}'`, spec);
  }
  return new IntervalSchedule(durationMs);
}

function zoneOfSpec(spec: string, name: string): TimeZone {
  try {
    return new TimeZone('cronSpec', name);
  } catch {
    throw wrong(`with a time zone that is known, not '${name}'`, spec);
  }
}

function wrong(requirement: string, spec: string): Error {
  return wrongValue('cronSpec', `a cron spec ${requirement}`, spec);
}
