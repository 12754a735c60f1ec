import { wrongType, wrongValue } from '../core/errors.ts';

/** A name that is kept as UTF-8, where half a surrogate pair has no place. */
export function requireText(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw wrongType(argument, 'a string', value);
  if (value.trim() === '') throw wrongValue(argument, 'a string that is not blank', value);
  if (!value.isWellFormed()) throw wrongValue(argument, 'well-formed Unicode', value);
}

/**
 * The name of a queue that tasks are added to or taken from. The keys of a queue in Redis are `asynq:{NAME}:…`, where a name with
 * a brace could be taken for another name and the rest of a key.
 */
export function requireQueueName(argument: string, value: unknown): asserts value is string {
  requireText(argument, value);
  if (/[{}]/u.test(value)) throw wrongValue(argument, "a queue name without '{' and '}'", value);
}

/**
 * The name of a queue that may have been made before braces were refused, or by asynq: it can be inspected, changed and removed,
 * unless its keys could be those of another queue.
 */
export function requireExistingQueueName(argument: string, value: unknown): asserts value is string {
  requireText(argument, value);
  if (!hasOwnKeys(value)) {
    throw wrongValue(argument, "a queue name that does not begin with '}' and does not contain '}:'", value);
  }
}

/**
 * Whether no key of a queue of that name can be a key of another one, and all are on one node of a cluster. The queue `c}:g:g`
 * would have its keys among those of the queue `c`. A cluster takes what is before the first `}`, and if that is nothing the
 * whole key.
 */
export function hasOwnKeys(queue: string): boolean {
  return !queue.startsWith('}') && !queue.includes('}:');
}
