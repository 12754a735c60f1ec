import { outOfRange, wrongType } from '../../core/errors.ts';
import { requireIntegerAtLeast, requireOptions, type OptionNames } from '../../core/validate.ts';
import type { CronSpec } from '../cron-spec.ts';

/** Which ticks are made up for that passed while no scheduler ran, or while all were asleep. */
export interface BackfillOptions {
  /** How old a tick may be, in milliseconds; may be `Infinity`. @default Infinity */
  readonly maxAgeMs?: number | undefined;
  /** How many at most: the newest ones, oldest first. An integer of at least 1. @default 100 */
  readonly maxTicks?: number | undefined;
}

const OPTIONS: OptionNames<BackfillOptions> = { maxAgeMs: true, maxTicks: true };

/** The options with every default filled in. */
export interface Backfill {
  readonly maxAgeMs: number;
  readonly maxTicks: number;
}

const DEFAULT_MAX_TICKS = 100;

/** Where the search for the newest ticks begins, at least. */
const SHORTEST_SPAN_MS = 60_000;

/** @returns undefined if none are. @throws TypeError or RangeError - an option is wrong. */
export function resolveBackfill(subject: string, value: BackfillOptions | boolean): Backfill | undefined {
  if (value === false) return undefined;
  if (value !== true) requireOptions(subject, value, OPTIONS, 'options.backfill');
  const { maxAgeMs = Infinity, maxTicks = DEFAULT_MAX_TICKS } = value === true ? {} : value;
  if (typeof maxAgeMs !== 'number')
    throw wrongType('options.backfill.maxAgeMs', 'a number of milliseconds', maxAgeMs);
  if (!(maxAgeMs >= 0)) throw outOfRange('options.backfill.maxAgeMs', 'at least 0 milliseconds', maxAgeMs);
  requireIntegerAtLeast('options.backfill.maxTicks', 1, maxTicks);
  return { maxAgeMs, maxTicks };
}

/**
 * The newest ticks of a span, `afterMs` excluded, `count` at most, oldest first. It looks back further and further, so the
 * cost is that of the ticks that are found, not of the years that have passed.
 */
export function newestTicks(
  spec: CronSpec,
  afterMs: number,
  untilMs: number,
  count: number,
): readonly number[] {
  const first = spec.next(afterMs);
  if (first === undefined || first > untilMs) return [];
  const second = spec.next(first);
  if (second === undefined || second > untilMs) return [first];
  let spanMs = Math.max((second - first) * count, SHORTEST_SPAN_MS);
  for (;;) {
    const fromMs = Math.max(afterMs, untilMs - spanMs);
    const ticks = ticksIn(spec, fromMs, untilMs, count);
    if (ticks.length === count || fromMs === afterMs) return ticks;
    spanMs *= 2;
  }
}

function ticksIn(spec: CronSpec, afterMs: number, untilMs: number, count: number): number[] {
  const ticks: number[] = [];
  for (let at = spec.next(afterMs); at !== undefined && at <= untilMs; at = spec.next(at)) {
    ticks.push(at);
    if (ticks.length > count) ticks.shift();
  }
  return ticks;
}
