/** `node:timers`, on one shared timing wheel. */
export { setImmediate, clearImmediate } from 'node:timers';
export { clearInterval, clearTimeout, setInterval, setTimeout } from './timers/functions.ts';
export type { Clearable } from './timers/functions.ts';
export type { Timeout } from './timers/timeout.ts';
export * as promises from './timers/promises.ts';
