import { outOfRange, wrongType, wrongValue } from './errors.ts';

/** The error for a delay; only called when the caller has seen that it is not what is required. */
export function invalidDelay(
  argument: string,
  value: unknown,
  required = 'a finite number of milliseconds',
): Error {
  return typeof value === 'number'
    ? outOfRange(argument, required, value)
    : wrongType(argument, 'a number of milliseconds', value);
}

/** The error for a timeout, which may be `Infinity`. */
export function invalidTimeout(argument: string, value: unknown): Error {
  return invalidDelay(argument, value, 'a number of milliseconds or Infinity');
}

export function requireFiniteNumber(argument: string, value: unknown): asserts value is number {
  if (!Number.isFinite(value)) throw invalidDelay(argument, value);
}

export function requireIntegerAtLeast(
  argument: string,
  minimum: number,
  value: unknown,
): asserts value is number {
  if (typeof value !== 'number') throw wrongType(argument, 'a number', value);
  if (!Number.isSafeInteger(value) || value < minimum) {
    throw outOfRange(argument, `an integer of at least ${minimum}`, value);
  }
}

export function requireFraction(argument: string, value: unknown): asserts value is number {
  if (typeof value !== 'number') throw wrongType(argument, 'a number', value);
  if (!(value >= 0 && value <= 1)) throw outOfRange(argument, 'a number from 0 to 1', value);
}

export function requireBoolean(argument: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw wrongType(argument, 'a boolean', value);
}

export function requireString(argument: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw wrongType(argument, 'a string', value);
}

export function requirePath(argument: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw wrongType(argument, 'a path', value);
  if (value.includes('\0')) throw wrongValue(argument, 'a path without null characters', value);
}

export function requireFunction(argument: string, value: unknown): void {
  if (typeof value !== 'function') throw wrongType(argument, 'a function', value);
}

export function requireOneOf(argument: string, allowed: readonly string[], value: unknown): void {
  if (!allowed.includes(value as string)) {
    throw wrongValue(argument, allowed.map((word) => `'${word}'`).join(' or '), value);
  }
}

export function requireObject(argument: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw wrongType(argument, 'an object', value);
}

/** Requires an object whose properties are entries; those of a Map or of Headers would silently be missing. */
export function requireRecord(argument: string, example: string, value: unknown): void {
  requireObject(argument, value);
  if (Symbol.iterator in (value as object)) throw wrongType(argument, `an object such as ${example}`, value);
}

/** Requires an object that has the methods of an interface. */
export function requireMethods(
  argument: string,
  description: string,
  methods: readonly string[],
  value: unknown,
): void {
  const given = value as Readonly<Record<string, unknown>> | null | undefined;
  if (!methods.every((method) => typeof given?.[method] === 'function')) {
    throw wrongType(argument, description, value);
  }
}

/** Requires an instance of a class that has its internals under a registered symbol, of this or another loaded copy of the package. */
export function requireInternals(
  argument: string,
  description: string,
  internals: symbol,
  value: unknown,
): void {
  const given = value as Readonly<Record<symbol, unknown>> | null | undefined;
  if (given?.[internals] === undefined) throw wrongType(argument, description, value);
}

const SIGNAL_METHODS: readonly (keyof AbortSignal)[] = [
  'addEventListener',
  'removeEventListener',
  'throwIfAborted',
];

export function requireSignal(argument: string, value: unknown): void {
  requireMethods(argument, 'an AbortSignal', SIGNAL_METHODS, value);
}

/** Whether there is something to wait for: a loop that awaits plain values costs a turn of the microtask queue each. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function';
}

/** Whether it is what Node's own functions reject with when their signal fires. Never throws. */
export function isAbortError(error: unknown): boolean {
  try {
    // No instanceof: under Jest, errors of Node's functions are of another realm than those of the program.
    return (error as { readonly name?: unknown } | null | undefined)?.name === 'AbortError';
  } catch {
    return false; // a thrown value may itself throw when its properties are read
  }
}

/** Whether the memory of bytes was transferred, so that they are empty now. Node 20 has no property for that. */
export function isDetached({ length, buffer }: Uint8Array): boolean {
  if (length > 0) return false;
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}
