/**
 * The functions of `node:timers`, on one shared timing wheel.
 *
 * @module escapement/timers
 */
export {
  clearImmediate,
  clearInterval,
  clearTimeout,
  setImmediate,
  setInterval,
  setTimeout,
} from './timers/functions.ts';
export type { Clearable, ClearImmediate, HostTimeoutLike, SetImmediate } from './timers/functions.ts';
export type { Timeout, TimeoutCallback } from './timers/timeout.ts';
export * as promises from './timers/promises.ts';
