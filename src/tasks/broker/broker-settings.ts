import { systemClock, type Clock } from '../../core/clock.ts';
import { requireClock } from '../../core/require-clock.ts';
import { requireIntegerAtLeast, requireObject } from '../../core/validate.ts';
import { requireDuration } from '../task-options.ts';

/** asynq's. */
const DEFAULT_MAX_ARCHIVED = 10_000;
const DEFAULT_ARCHIVE_RETENTION_MS = 90 * 86_400_000;

/** What every broker can be told. All is checked when it is made. */
export interface BrokerSettings {
  /** Where time comes from, for everybody who works with the broker. @default systemClock */
  readonly clock?: Clock;
  /** Tasks that the archive of a queue keeps: one more takes the place of the oldest. At least 0. @default 10_000 */
  readonly maxArchived?: number;
  /** How long the archive keeps a task, in milliseconds. @default 7_776_000_000: 90 days */
  readonly archiveRetentionMs?: number;
}

/** The settings with every default filled in. */
export type ResolvedBrokerSettings = Required<BrokerSettings>;

/** @throws TypeError or RangeError - a setting is wrong. */
export function resolveBrokerSettings(options: BrokerSettings): ResolvedBrokerSettings {
  requireObject('options', options);
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
