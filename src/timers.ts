/** `node:timers`, on one shared timing wheel. */
export { setImmediate, clearImmediate } from 'node:timers';
export { clearInterval, clearTimeout, setInterval, setTimeout } from './timers/functions.ts';
export type { Clearable, HostTimeoutLike } from './timers/functions.ts';
export type { Timeout, TimeoutCallback } from './timers/timeout.ts';
export * as promises from './timers/promises.ts';
