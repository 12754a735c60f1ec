import { wrongType, wrongValue } from '../../core/errors.ts';
import { checkOptions, integer, type OptionTable } from '../../core/options.ts';
import {
  requireBoolean,
  requireFiniteNumber,
  requireIntegerAtLeast,
  requireObject,
  requireString,
} from '../../core/validate.ts';
import { requireCancelOutcome, requireDuration, requireQueueName } from '../argument-checks.ts';
import { requireLimits } from './broker-settings.ts';
import { requireNewTask } from '../task-options.ts';
import type { Broker, CancelRequest, GroupLimits, Page, TaskFailure } from './broker.ts';

/** An operation of a broker: a method whose promise settles when it is done. */
export type BrokerOperation = Exclude<keyof Broker, 'clock' | 'maintenance' | 'leaseHolder' | 'close'>;

/** What is true of an operation in every broker. */
export interface OperationRow<O extends BrokerOperation> {
  /** Whether it writes nothing, so that a broker which cannot write to its folder carries it out. */
  readonly isReading?: boolean;
  /** Whether it leases tasks: a run starts as soon as a crash of the process cannot hide that it has started. */
  readonly isLeasing?: boolean;
  /** Whether its result has messages that the caller has not passed: their payloads may have to be read from a disk. */
  readonly returnsMessages?: boolean;
  /** Called before the operation. @throws TypeError or RangeError - an argument is not valid. */
  readonly check?: (...args: Parameters<Broker[O]>) => void;
}

type OperationTable = { readonly [O in BrokerOperation]: OperationRow<O> };

const READING = { isReading: true } as const;
const READING_MESSAGES = { ...READING, returnsMessages: true } as const;
const LEASING = { isLeasing: true, returnsMessages: true } as const;

const GROUP_LIMITS = {
  graceMs: [requireFiniteNumber],
  maxDelayMs: [requireFiniteNumber],
  maxSize: [integer(0)],
} satisfies OptionTable<GroupLimits>;

const PAGE = { page: [integer(1)], size: [integer(1)] } satisfies OptionTable<Page>;

const CANCEL_REQUEST = {
  taskId: [requireString],
  queue: [requireString, undefined],
  outcome: [requireCancelOutcome],
} satisfies OptionTable<CancelRequest>;

/** Every operation; TypeScript checks that none is missing. */
export const BROKER_OPERATIONS = {
  ping: READING,

  enqueue: { check: requireNewTask },
  enqueueMany: {}, // each task is checked, and rejected, by itself
  enqueueTick: {
    check(task, tick) {
      requireDuration('tick.atMs', tick.atMs);
      requireNewTask(task);
    },
  },
  lastTickMs: READING,

  dequeue: {
    ...LEASING,
    check(_queue, limit, leaseMs) {
      requireIntegerAtLeast('limit', 0, limit);
      requireDuration('leaseMs', leaseMs);
    },
  },
  complete: {},
  retry: {
    check(task, failure, atMs) {
      requireFailure(task, failure);
      requireDuration('atMs', atMs);
    },
  },
  archive: { check: requireFailure },
  release: {},
  discard: {},
  extendLeases: {
    ...READING, // leases are not written
    check(_tasks, leaseMs) {
      requireDuration('leaseMs', leaseMs);
    },
  },
  writeResult: {},
  writeProgress: {},

  forward: {},
  recover: {
    ...LEASING,
    check(_queues, graceMs, leaseMs) {
      requireDuration('graceMs', graceMs);
      requireDuration('leaseMs', leaseMs);
    },
  },
  deleteExpired: {
    check(_queues, limit) {
      requireIntegerAtLeast('limit', 1, limit);
    },
  },

  groups: READING,
  takeGroup: {
    returnsMessages: true,
    check(_queue, _group, limits, holdMs) {
      checkOptions('Broker.takeGroup', limits, GROUP_LIMITS, 'limits');
      requireDuration('holdMs', holdMs);
    },
  },
  replaceSet: {
    check({ queue }, task) {
      const { queue: own } = task.message;
      if (own !== queue) throw wrongValue('task.message.queue', `the queue of the set, '${queue}'`, own);
      requireNewTask(task);
    },
  },
  reclaimSets: {},

  subscribe: {
    ...READING,
    check(listener, queues) {
      requireObject('listener', listener);
      if (!Array.isArray(queues)) throw wrongType('queues', 'an array of names', queues);
    },
  },
  cancel: {
    ...READING,
    check(request) {
      checkOptions('Broker.cancel', request, CANCEL_REQUEST, 'request');
    },
  },

  announceServer: READING,
  withdrawServer: READING,
  servers: READING,
  announceScheduler: READING,
  withdrawScheduler: READING,
  scheduleEntries: READING,
  recordEnqueueEvent: {},
  enqueueEvents: { ...READING, check: requirePage },

  queues: READING,
  queueStats: READING,
  history: {
    ...READING,
    check(_queue, days) {
      requireIntegerAtLeast('days', 1, days);
    },
  },
  task: READING_MESSAGES,
  tasks: {
    ...READING_MESSAGES,
    check(_queue, state, page) {
      requirePage(state, page);
    },
  },
  scan: {
    ...READING_MESSAGES,
    check(_queue, _states, limit) {
      requireIntegerAtLeast('limit', 1, limit);
    },
  },

  change: {},
  updatePayload: {},
  repair: {
    ...READING, // a broker with a folder has nothing to repair
    check(_queue, options) {
      checkOptions('Broker.repair', options, { apply: [requireBoolean] });
    },
  },

  limits: READING,
  setLimits: {
    check(queue, limits) {
      requireQueueName('queue', queue);
      if (limits !== undefined) requireLimits('limits', limits);
    },
  },
  keys: { ...READING, check: requirePage },
  pause: {},
  resume: {},
  removeQueue: {
    check(_queue, options) {
      checkOptions('Broker.removeQueue', options, { force: [requireBoolean] });
    },
  },
} satisfies OperationTable;

/** The operations that have `returnsMessages`. */
export type ReturningOperation = {
  [O in BrokerOperation]: (typeof BROKER_OPERATIONS)[O] extends { readonly returnsMessages: true }
    ? O
    : never;
}[BrokerOperation];

export const BROKER_OPERATION_NAMES = Object.keys(BROKER_OPERATIONS) as readonly BrokerOperation[];

function requirePage(_of: string, page: unknown): void {
  checkOptions('Broker', page, PAGE, 'page');
}

function requireFailure(_task: unknown, failure: TaskFailure | null | undefined): void {
  requireString('failure.error', failure?.error);
}
