import { wrongType, wrongValue } from '../core/errors.ts';

/** A name that is kept as UTF-8, where half a surrogate pair has no place. */
export function requireText(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw wrongType(argument, 'a string', value);
  if (value.trim() === '') throw wrongValue(argument, 'a string that is not blank', value);
  if (!value.isWellFormed()) throw wrongValue(argument, 'well-formed Unicode', value);
}
