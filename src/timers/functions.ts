import { builtinModule, hostFunction, isFaked, ON_CLOCK, original } from '../core/host.ts';
import * as promises from './promises.ts';
import { Timeout, timeoutOf, type TimeoutCallback } from './timeout.ts';

/** An argument of the clear functions: a timeout of this package or of the host, its number, or nothing. */
export type Clearable = Timeout | HostTimeoutLike | string | number | null | undefined;

/** A timeout of the host. */
export interface HostTimeoutLike {
  /** Lets it keep the process alive. */
  ref(): unknown;
  /** Lets the process end although it is pending. */
  unref(): unknown;
}

/**
 * Calls `callback(...args)` once, `delay` milliseconds from now: the host's function of this name on the shared timer.
 *
 * Differs in that it never comes early, and that any delay is honoured: the host takes more than 2^31 - 1 for 1.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE` - `callback` is not a function.
 */
export function setTimeout<Args extends unknown[]>(
  callback: (...args: Args) => void,
  delay?: number,
  ...args: Args
): Timeout;
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- as the host declares it: `resolve` fits
export function setTimeout(callback: (_: void) => void, delay?: number): Timeout;
export function setTimeout(callback: TimeoutCallback, delay?: number, ...args: unknown[]): Timeout {
  return new Timeout(callback, delay, args.length === 0 ? undefined : args, false, true);
}

// eslint-disable-next-line @typescript-eslint/no-namespace -- as the host declares it: the type of `util.promisify(setTimeout)`
export declare namespace setTimeout {
  /** Type of `util.promisify(setTimeout)`; not a property of the function. */
  export const __promisify__: typeof promises.setTimeout;
}

/**
 * Calls `callback(...args)` every `delay` milliseconds, the first time after one delay.
 *
 * Differs from the host's in that it does not drift: the n-th call is due n delays after this one, however long the
 * callbacks take. Calls that were missed in a stall are left out.
 *
 * @throws TypeError `ERR_INVALID_ARG_TYPE` - `callback` is not a function.
 */
export function setInterval<Args extends unknown[]>(
  callback: (...args: Args) => void,
  delay?: number,
  ...args: Args
): Timeout;
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- as the host declares it
export function setInterval(callback: (_: void) => void, delay?: number): Timeout;
export function setInterval(callback: TimeoutCallback, delay?: number, ...args: unknown[]): Timeout {
  return new Timeout(callback, delay, args.length === 0 ? undefined : args, true, true);
}

/** Clears a timeout or an interval. Anything else, and one that is no longer pending, is ignored. */
export function clearTimeout(timeout: Clearable): void {
  if (timeout instanceof Timeout) Timeout.clear(timeout);
  else if (timeout !== undefined && timeout !== null) clearOther(timeout);
}

/** The same as `clearTimeout`. */
export function clearInterval(interval: Clearable): void {
  clearTimeout(interval);
}

/**
 * Clears by a number, or clears a timeout of the host: its numbers and those of this package come from one counter, so they differ.
 * A timeout of another loaded copy of this package is cleared as one of the host.
 */
function clearOther(timeout: HostTimeoutLike | string | number): void {
  const isNumber = typeof timeout === 'number' || typeof timeout === 'string';
  const ours = isNumber ? timeoutOf(timeout) : undefined;
  if (ours !== undefined) {
    Timeout.clear(ours);
    return;
  }
  // Not a function that wraps the global one, which may be ours.
  const isFake = isFaked(hostFunction('setTimeout'));
  const clear = isFake ? hostFunction('clearTimeout') : original.clearTimeout;
  clear(timeout as Parameters<typeof globalThis.clearTimeout>[0]);
}

/** Type of Node's `setImmediate`; in a program without `@types/node` that of a timeout. */
export type SetImmediate =
  typeof globalThis extends Record<'setImmediate', infer Type>
    ? Type
    : (callback: (...args: never[]) => void, ...args: unknown[]) => unknown;
/** Type of Node's `clearImmediate`; in a program without `@types/node` that of a timeout. */
export type ClearImmediate =
  typeof globalThis extends Record<'clearImmediate', infer Type> ? Type : (immediate: unknown) => void;

interface Immediates {
  readonly setImmediate: SetImmediate;
  readonly clearImmediate: ClearImmediate;
}

const immediates = builtinModule<Immediates>('node:timers') ?? shortestTimeouts();

/** The function of the host, because there is no delay. If the host has none: a timeout of the shortest delay. */
export const setImmediate: SetImmediate = immediates.setImmediate;
/** Cancels what `setImmediate` has returned. */
export const clearImmediate: ClearImmediate = immediates.clearImmediate;

function shortestTimeouts(): Immediates {
  const set = (callback: TimeoutCallback, ...args: unknown[]): unknown =>
    hostFunction('setTimeout')(callback, 0, ...args);
  const clear = (immediate: unknown): void => {
    hostFunction('clearTimeout')(immediate as Parameters<typeof globalThis.clearTimeout>[0]);
  };
  return { setImmediate: set as SetImmediate, clearImmediate: clear };
}

for (const [name, ours] of Object.entries({ setTimeout, setInterval, clearTimeout, clearInterval })) {
  Object.defineProperty(ours, ON_CLOCK, { value: true });
  Object.defineProperty(ours, 'name', { value: name }); // a bundler renames one of two functions of a name
}
// The property that `util.promisify` reads; the symbol is registered, so no import of the host's is needed.
Object.defineProperty(setTimeout, Symbol.for('nodejs.util.promisify.custom'), {
  enumerable: true,
  value: promises.setTimeout,
});
