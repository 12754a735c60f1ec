import { systemClock, type Clock } from '../../../core/clock.ts';
import { requireClock } from '../../../core/require-clock.ts';
import { requireIntegerAtLeast, requireObject } from '../../../core/validate.ts';
import { requireDuration } from '../../task-options.ts';
import type { RedisConnectionOptions } from './connection-options.ts';

/** asynq's. */
const DEFAULT_MAX_ARCHIVED = 10_000;
const DEFAULT_ARCHIVE_RETENTION_MS = 90 * 86_400_000;

/** Options of a `RedisBroker` besides its way to Redis. */
export interface RedisBrokerSettings {
  /** Where time comes from, for everybody who works with the broker. @default systemClock */
  readonly clock?: Clock;
  /** Tasks that the archive of a queue keeps: one more takes the place of the oldest. At least 0. @default 10_000 */
  readonly maxArchived?: number;
  /** How long the archive keeps a task, in milliseconds. @default 7_776_000_000: 90 days */
  readonly archiveRetentionMs?: number;
}

/** Options of a `RedisBroker`. All are checked when it is made. */
export type RedisBrokerOptions = RedisConnectionOptions & RedisBrokerSettings;

/** The settings with every default filled in. */
export type ResolvedRedisBrokerOptions = Required<RedisBrokerSettings>;

/** @throws TypeError or RangeError - an option is wrong. */
export function resolveRedisBrokerOptions(options: RedisBrokerOptions): ResolvedRedisBrokerOptions {
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
