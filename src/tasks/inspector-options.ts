import type { OptionTable } from '../core/options.ts';
import { SIGNAL_OPTIONS, type SignalOptions } from '../core/signal-options.ts';
import type { OptionNames } from '../core/validate.ts';
import type { Broker, CancelOutcome } from './broker/broker.ts';
import { requireQueueName } from './require-text.ts';
import { DEFAULT_QUEUE } from './task-options.ts';

/** What an inspector is made from. */
export interface InspectorOptions {
  /** What is looked at. The inspector does not close it. */
  readonly broker: Broker;
}

export const INSPECTOR_OPTIONS: OptionNames<InspectorOptions> = { broker: true };

/** How a queue is deleted. */
export interface DeleteQueueOptions {
  /** Whether its tasks are deleted too, unless one is active. @default false */
  readonly force?: boolean | undefined;
}

export const DELETE_QUEUE_OPTIONS: OptionNames<DeleteQueueOptions> = { force: true };

/** How a run is cancelled. */
export interface CancelOptions {
  /** Of which queue the task is. @default any: an id may be in several */
  readonly queue?: string | undefined;
  /** What becomes of the task: it runs again later, is archived, or is gone. @default 'retry' */
  readonly outcome?: CancelOutcome | undefined;
  /** How long an answer is waited for, in milliseconds; 0 for not at all. @default 1000 */
  readonly waitMs?: number | undefined;
}

export const CANCEL_OPTIONS: OptionNames<CancelOptions> = { queue: true, outcome: true, waitMs: true };

/** How queues are repaired. */
export interface RepairOptions {
  /** Whether what is found is seen to. @default false */
  readonly apply?: boolean | undefined;
  /** Which ones. @default all */
  readonly queues?: readonly string[] | undefined;
}

export const REPAIR_OPTIONS: OptionNames<RepairOptions> = { apply: true, queues: true };

/** How the end of a task is waited for. */
export interface WaitForOptions extends SignalOptions {
  /** Of which queue the task is, if only its id was given. @default 'default' */
  readonly queue?: string | undefined;
}

export const WAIT_FOR_OPTIONS = {
  ...SIGNAL_OPTIONS,
  queue: [requireQueueName, DEFAULT_QUEUE],
} satisfies OptionTable<WaitForOptions>;
