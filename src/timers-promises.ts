/** `node:timers/promises`, on one shared timing wheel. */
export { scheduler, setImmediate, setInterval, setTimeout } from './timers/promises.ts';
export type { Scheduler, TimerOptions } from './timers/promises.ts';
