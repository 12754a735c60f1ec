import { requireClock, systemClock, type Clock } from '../../core/clock.ts';
import {
  checkOptions,
  integer,
  milliseconds,
  type Check,
  type OptionTable,
  type Resolved,
} from '../../core/options.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/units.ts';
import { requireRecord } from '../../core/validate.ts';
import { requireDuration, requireQueueName } from '../argument-checks.ts';
import type { QueueLimits, Rate } from './broker-types.ts';

/** Days whose counts are kept, as in asynq. */
export const HISTORY_DAYS = 90;

/**
 * How long the counts of a day are kept, and the history of a schedule entry after its last event. No operation reports that an entry
 * was removed: a scheduler that has it may start again.
 */
export const HISTORY_KEPT_MS = HISTORY_DAYS * DAY_MS;

/** Events of one schedule entry that are kept; asynq's. */
export const EVENTS_KEPT = 1_000;

/** Tasks of a list, or of a state, whose memory is measured for all of them; asynq's. */
export const MEMORY_SAMPLE = 20;

/** How long the mark of its latest tick is kept: longer, so that a yearly entry makes up for the tick that it has missed. */
export const MARK_KEPT_MS = 400 * DAY_MS;

/**
 * How far the tick of a schedule may be ahead of the broker's time, in milliseconds: clocks of a fleet differ, but a clock that
 * differs more is wrong.
 */
export const MOST_AHEAD_MS = 5 * MINUTE_MS;

/**
 * How far the latest tick that was added may be ahead of the time, in milliseconds, if the clock was set back: until the time
 * has come as far again, no tick is added twice. Summer time and its mistakes are two hours; beyond that the clock was wrong.
 */
export const MOST_SET_BACK_MS = 2 * HOUR_MS;

/** How often a lease is renewed in its time: five renewals may fail. */
export const RENEWALS_PER_LEASE = 6;

/** Options of every broker. All are validated when it is made. */
export interface BrokerSettings {
  /** Where the time of everything that uses the broker comes from. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Number of tasks that the archive of a queue keeps: one more replaces the oldest. At least 0. @default 10_000 */
  readonly maxArchived?: number | undefined;
  /** How long the archive keeps a task, in milliseconds. @default 7_776_000_000: 90 days */
  readonly archiveRetentionMs?: number | undefined;
}

/** The defaults of the archive are asynq's. */
export const BROKER_SETTINGS = {
  clock: [requireClock, systemClock],
  maxArchived: [integer(0), 10_000],
  archiveRetentionMs: [requireDuration, 90 * DAY_MS],
} satisfies OptionTable<BrokerSettings>;

/** The settings with every default filled in. */
export type ResolvedBrokerSettings = Resolved<BrokerSettings, typeof BROKER_SETTINGS>;

/** The limits of a key, or those of a queue without the ones of its keys. */
export type Limits = Omit<QueueLimits, 'perKey'>;

const RATE = {
  tasks: [integer(1)],
  perMs: [milliseconds(1)],
  burst: [integer(1), undefined],
} satisfies OptionTable<Rate>;

const LIMITS = {
  concurrency: [integer(1), undefined],
  rate: [nested('Rate', RATE), undefined],
} satisfies OptionTable<Limits>;

const QUEUE_LIMITS = {
  ...LIMITS,
  perKey: [nested('QueueLimits', LIMITS), undefined],
} satisfies OptionTable<QueueLimits>;

export const requireLimits: Check = nested('QueueLimits', QUEUE_LIMITS);

/** Requires limits by the names of queues. */
export const requireLimitsByQueue: Check = (argument, value) => {
  requireRecord(argument, '{ mail: { concurrency: 5 } }', value);
  for (const [name, limits] of Object.entries(value as object)) {
    requireQueueName(`a name of ${argument}`, name);
    checkOptions(`limits of queue '${name}'`, limits, QUEUE_LIMITS, `${argument}.${name}`);
  }
};

function nested(subject: string, table: Parameters<typeof checkOptions>[2]): Check {
  return (argument, value) => {
    checkOptions(subject, value, table, argument);
  };
}

/** Returns a frozen copy; undefined if there is no limit. */
export function limitsOf(given: QueueLimits | undefined): QueueLimits | undefined {
  if (given === undefined) return undefined;
  const { concurrency, rate, perKey } = given;
  return defined({ concurrency, rate: rate && rateOf(rate), perKey: limitsOf(perKey) });
}

function rateOf({ tasks, perMs, burst }: Rate): Rate | undefined {
  return defined({ tasks, perMs, burst });
}

/** Returns a frozen copy without the fields that are undefined; undefined if none is left. */
function defined<T extends object>(fields: T): T | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return given.length === 0 ? undefined : Object.freeze(Object.fromEntries(given) as T);
}
