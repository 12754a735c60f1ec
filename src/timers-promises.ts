/**
 * The functions of `node:timers/promises`, on one shared timing wheel.
 *
 * @module escapement/timers/promises
 */
export { scheduler, setImmediate, setInterval, setTimeout } from './timers/promises.ts';
export type { Scheduler, TimerOptions } from './timers/promises.ts';
