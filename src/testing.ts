/**
 * Virtual time, integrity checkers and an unreliable broker, for tests.
 *
 * @module escapement/testing
 */
export { ManualClock } from './core/manual-clock.ts';
export type { ManualClockOptions } from './core/manual-clock.ts';
export { checkTimer } from './timer/check-timer.ts';
export { checkPurgatory } from './purgatory/check-purgatory.ts';
export { checkQueue } from './workqueue/check-queue.ts';
export { checkSegments } from './diskqueue/check-segments.ts';
export { checkBroker, checkBrokerLog } from './tasks/broker/embedded/check-broker.ts';
export { flakyBroker } from './tasks/broker/flaky-broker.ts';
export type { BrokerOperation } from './tasks/broker/broker-operations.ts';
export type {
  FlakyBroker,
  FlakyBrokerOptions,
  FlakyCounts,
  FlakyRates,
} from './tasks/broker/flaky-broker.ts';
