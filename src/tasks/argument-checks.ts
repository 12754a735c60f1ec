import { outOfRange, wrongType, wrongValue } from '../core/errors.ts';
import { oneOf, type Check } from '../core/options.ts';
import { LAST_DATE_MS } from '../core/units.ts';
import { requireFiniteNumber, requireMethods, requireString } from '../core/validate.ts';

/* Checks of arguments that several classes make. Each throws a TypeError or a RangeError. */

/** Requires a name. It is stored as UTF-8, which cannot encode half a surrogate pair. */
export function requireText(argument: string, value: unknown): asserts value is string {
  requireString(argument, value);
  if (value.trim() === '') throw wrongValue(argument, 'a string that is not blank', value);
  if (!value.isWellFormed()) throw wrongValue(argument, 'well-formed Unicode', value);
}

/**
 * Requires the name of a queue that tasks are added to or taken from. The keys of a queue in Redis are `asynq:{NAME}:…`: a name with
 * a brace could be read as another name and the rest of a key.
 */
export function requireQueueName(argument: string, value: unknown): asserts value is string {
  requireText(argument, value);
  if (/[{}]/u.test(value)) throw wrongValue(argument, "a queue name without '{' and '}'", value);
}

/**
 * Requires the name of a queue that may have been made before braces were rejected, or by asynq: it can be inspected, changed and
 * removed, unless its keys could be those of another queue.
 */
export function requireExistingQueueName(argument: string, value: unknown): asserts value is string {
  requireText(argument, value);
  if (!hasOwnKeys(value)) {
    throw wrongValue(argument, "a queue name that does not begin with '}' and does not contain '}:'", value);
  }
}

/**
 * Returns whether no key of a queue of that name can be a key of another queue, and all are on one node of a cluster. The keys of a
 * queue `c}:g:g` would be among those of the queue `c`. A cluster hashes the text between the first `{` and the next `}`, or the
 * whole key if that text is empty.
 */
export function hasOwnKeys(queue: string): boolean {
  return !queue.startsWith('}') && !queue.includes('}:');
}

/** Requires a duration in milliseconds, or a time in wall-clock milliseconds. */
export function requireDuration(argument: string, value: unknown): asserts value is number {
  requireFiniteNumber(argument, value);
  if (value < 0 || value > LAST_DATE_MS) {
    throw outOfRange(argument, `from 0 to ${LAST_DATE_MS} milliseconds`, value);
  }
}

/** Requires a Date, or wall-clock milliseconds. */
export function requireTime(argument: string, value: unknown): void {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms !== 'number') throw wrongType(argument, 'a Date or a number of milliseconds', value);
  if (!(ms >= 0 && ms <= LAST_DATE_MS)) throw outOfRange(argument, 'a time since the epoch', ms);
}

export const requireCancelOutcome = oneOf('retry', 'archive', 'delete');

export function requireBroker(argument: string, value: unknown): void {
  const methods = ['enqueue', 'dequeue', 'complete', 'subscribe', 'queues'];
  requireMethods(argument, 'a Broker, such as an EmbeddedBroker or a RedisBroker', methods, value);
}

/** Returns the checked fields of JSON. @param argument - the name of the JSON in errors, and a point. */
export function fieldsIn<Fields extends object>(
  checks: Readonly<Record<keyof Fields, Check>>,
  json: Readonly<Record<string, unknown>>,
  argument = '',
): Fields {
  const fields = Object.entries<Check>(checks).map(([name, check]) => {
    check(argument + name, json[name]);
    return [name, json[name]] as const;
  });
  return Object.fromEntries(fields) as Fields;
}
