import { systemClock, type Clock } from '../../core/clock.ts';
import { requireClock } from '../../core/require-clock.ts';
import { requireIntegerAtLeast, requireOptions, type OptionNames } from '../../core/validate.ts';
import { requireDuration } from '../task-options.ts';

/**
 * The history of a schedule entry is kept for that long after its last event, as the counts of days are. The entry may be gone, and
 * no broker is told of that: a scheduler that has it may start again.
 */
export const HISTORY_KEPT_MS = 90 * 86_400_000;

/** The mark of its latest tick is kept for longer: with it a yearly entry makes up for the tick that it has missed. */
export const MARK_KEPT_MS = 400 * 86_400_000;

/** asynq's. */
const DEFAULT_MAX_ARCHIVED = 10_000;
const DEFAULT_ARCHIVE_RETENTION_MS = 90 * 86_400_000;

/**
 * How far the tick of a schedule may be ahead of the broker's time, in milliseconds: clocks of a fleet differ, but a clock that
 * differs more is wrong.
 */
export const MOST_AHEAD_MS = 300_000;

/**
 * How far the latest tick that was added may be ahead of the time, in milliseconds, if the clock was set back: until the time
 * has come as far again, no tick is added twice. Summer time and its mistakes are two hours; beyond that the clock was wrong.
 */
export const MOST_SET_BACK_MS = 7_200_000;

/** What every broker can be told. All is checked when it is made. */
export interface BrokerSettings {
  /** Where time comes from, for everybody who works with the broker. @default systemClock */
  readonly clock?: Clock;
  /** Tasks that the archive of a queue keeps: one more takes the place of the oldest. At least 0. @default 10_000 */
  readonly maxArchived?: number;
  /** How long the archive keeps a task, in milliseconds. @default 7_776_000_000: 90 days */
  readonly archiveRetentionMs?: number;
}

export const BROKER_SETTINGS: OptionNames<BrokerSettings> = {
  ...{ clock: true, maxArchived: true, archiveRetentionMs: true },
};

/** The settings with every default filled in. */
export type ResolvedBrokerSettings = Required<BrokerSettings>;

/** @throws TypeError or RangeError - a setting is wrong. */
export function resolveBrokerSettings(
  subject: string,
  options: BrokerSettings,
  names: OptionNames<BrokerSettings> = BROKER_SETTINGS,
): ResolvedBrokerSettings {
  requireOptions(subject, options, names);
  const {
    clock = systemClock,
    maxArchived = DEFAULT_MAX_ARCHIVED,
    archiveRetentionMs = DEFAULT_ARCHIVE_RETENTION_MS,
  } = options;
  requireClock('options.clock', clock);
  requireIntegerAtLeast('options.maxArchived', 0, maxArchived);
  requireDuration('options.archiveRetentionMs', archiveRetentionMs);
  return { clock, maxArchived, archiveRetentionMs };
}
