import { checkOptions, integer, milliseconds, type Check, type OptionTable } from '../core/options.ts';
import { requireRecord } from '../core/validate.ts';
import { requireQueueName } from './argument-checks.ts';
import type { QueueLimits, Rate } from './broker/broker-types.ts';

export type { QueueLimits, Rate } from './broker/broker-types.ts';

/** The limits of a key, or those of a queue without the ones of its keys. */
type Limits = Omit<QueueLimits, 'perKey'>;

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
    requireLimits(`${argument}.${name}`, limits);
  }
};

function nested(subject: string, table: Parameters<typeof checkOptions>[2]): Check {
  return (argument, value) => {
    checkOptions(subject, value, table, argument);
  };
}

/** Returns a frozen copy in which every rate has its burst; undefined if there is no limit. */
export function limitsOf(given: QueueLimits | undefined): QueueLimits | undefined {
  if (given === undefined) return undefined;
  const perKey = given.perKey && limitsOfOne(given.perKey);
  const limits = { ...limitsOfOne(given), ...(perKey && { perKey }) };
  return Object.keys(limits).length === 0 ? undefined : Object.freeze(limits);
}

function limitsOfOne({ concurrency, rate }: Limits): Limits | undefined {
  if (concurrency === undefined && rate === undefined) return undefined;
  return Object.freeze({
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate: Object.freeze({ ...rate, burst: rate.burst ?? rate.tasks }) }),
  });
}
