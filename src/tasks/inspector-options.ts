import { wrongType } from '../core/errors.ts';
import { integer, oneOf, type Check, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';
import { requireBoolean, requireSignal } from '../core/validate.ts';
import {
  requireBroker,
  requireCancelOutcome,
  requireDuration,
  requireExistingQueueName,
} from './argument-checks.ts';
import type { Broker, CancelOutcome } from './broker/broker.ts';
import { DEFAULT_QUEUE } from './task-options.ts';
import { TASK_STATES, type TaskState } from './task-state.ts';

/** Options of an {@link Inspector}. */
export interface InspectorOptions {
  /** The broker to inspect. The inspector does not close it. */
  readonly broker: Broker;
}

export const INSPECTOR_OPTIONS = { broker: [requireBroker] } satisfies OptionTable<InspectorOptions>;

/** Options of {@link Inspector.deleteQueue}. */
export interface DeleteQueueOptions {
  /** Whether the tasks of the queue are deleted too, unless one is active. @default false */
  readonly force?: boolean | undefined;
}

export const DELETE_QUEUE_OPTIONS = {
  force: [requireBoolean, false],
} satisfies OptionTable<DeleteQueueOptions>;

/** Options of {@link Inspector.cancelProcessing}. */
export interface CancelOptions {
  /** Queue of the task. @default any: several queues may have a task with the id */
  readonly queue?: string | undefined;
  /** What becomes of the task: it runs again later, is archived, or is deleted. @default 'retry' */
  readonly outcome?: CancelOutcome | undefined;
  /** How long to wait for an answer of the server, in milliseconds; 0 to return at once. @default 1000 */
  readonly waitMs?: number | undefined;
}

export const CANCEL_OPTIONS = {
  queue: [requireExistingQueueName, undefined],
  outcome: [requireCancelOutcome, 'retry'],
  waitMs: [requireDuration, 1_000],
} as const satisfies OptionTable<CancelOptions>;

/** Options of {@link Inspector.repair}. */
export interface RepairOptions {
  /** Whether defects are repaired. @default false */
  readonly apply?: boolean | undefined;
  /** Names of the queues to check. @default all */
  readonly queues?: readonly string[] | undefined;
}

function arrayOf(what: string, check: Check): Check {
  return (argument, value) => {
    if (!Array.isArray(value)) throw wrongType(argument, `an array of ${what}`, value);
    for (const one of value as unknown[]) check(argument, one);
  };
}

export const REPAIR_OPTIONS = {
  apply: [requireBoolean, false],
  queues: [arrayOf('names', requireExistingQueueName), undefined],
} satisfies OptionTable<RepairOptions>;

/** Options of {@link Inspector.waitFor}. */
export interface WaitForOptions extends SignalOptions {
  /** Queue of the task, if the task is given by its id. @default 'default' */
  readonly queue?: string | undefined;
}

export const WAIT_FOR_OPTIONS = {
  signal: [requireSignal, undefined],
  queue: [requireExistingQueueName, DEFAULT_QUEUE],
} satisfies OptionTable<WaitForOptions>;

/** A page of a list. */
export interface ListOptions {
  /** Number of the page, from 1. @default 1 */
  readonly page?: number | undefined;
  /** Entries per page, from 1 to 1000. @default 30 */
  readonly pageSize?: number | undefined;
}

/** Options of {@link Inspector.scan}. */
export interface ScanOptions {
  /** States of the tasks. @default all */
  readonly states?: readonly TaskState[] | undefined;
  /** At most how many tasks a piece has, from 1 to 1000; a broker may read fewer at a time. @default 1000 */
  readonly pageSize?: number | undefined;
}

/** A page is read in one operation of the broker. */
export const MAX_PAGE_SIZE = 1_000;

/** The number of the last entry of the page is a safe integer. */
export const MAX_PAGE = Math.floor(Number.MAX_SAFE_INTEGER / MAX_PAGE_SIZE);

export const LIST_OPTIONS = {
  page: [integer(1, MAX_PAGE), 1],
  pageSize: [integer(1, MAX_PAGE_SIZE), 30],
} satisfies OptionTable<ListOptions>;

export const SCAN_OPTIONS = {
  states: [arrayOf('states', oneOf(...TASK_STATES)), TASK_STATES],
  pageSize: [integer(1, MAX_PAGE_SIZE), MAX_PAGE_SIZE],
} satisfies OptionTable<ScanOptions>;
