import {
  Client,
  EmbeddedBroker,
  PeriodicTaskManager,
  Scheduler,
  Server,
  taskQueueMetrics,
} from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { flakyBroker } from 'escapement/testing';
import { expect, it } from 'vitest';
import { noopMetrics as metrics } from '../metrics/measured.ts';

const broker = await EmbeddedBroker.open();

/** The options that are durations, and what takes them. */
const DURATIONS: readonly (readonly [string, readonly string[], (options: object) => unknown])[] = [
  [
    'Server',
    [
      ...['shutdownTimeoutMs', 'graceMs', 'pollIntervalMs', 'delayedTaskCheckIntervalMs', 'leaseMs'],
      ...['healthCheckIntervalMs', 'groupGracePeriodMs', 'groupMaxDelayMs', 'janitorIntervalMs'],
    ],
    (options) => new Server({ broker, ...options }),
  ],
  ['Scheduler', ['heartbeatIntervalMs'], (options) => new Scheduler({ broker, ...options })],
  [
    'PeriodicTaskManager',
    ['syncIntervalMs', 'heartbeatIntervalMs'],
    (options) => new PeriodicTaskManager({ broker, provider: { getConfigs: () => [] }, ...options }),
  ],
  ['taskQueueMetrics', ['intervalMs'], (options) => taskQueueMetrics({ broker, metrics, ...options })],
  ['Client', ['timeoutMs'], (options) => new Client({ url: 'http://127.0.0.1:1', ...options })],
  ['RedisBroker', ['timeoutMs'], (options) => new RedisBroker({ url: 'redis://127.0.0.1:1', ...options })],
  ['flakyBroker', ['delayMs'], (options) => flakyBroker(broker, options)],
];

it.each(DURATIONS.flatMap(([subject, names, make]) => names.map((name) => [subject, name, make] as const)))(
  '%s refuses a %s that no clock can count',
  (_, name, make) => {
    for (const ms of [1e300, Number.MAX_VALUE]) {
      expect(() => make({ [name]: ms })).toThrow(
        expect.objectContaining({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' }),
      );
    }
  },
);

it.each([
  ['a scheduler', (ms: number) => new Scheduler({ broker, heartbeatIntervalMs: ms })],
  ['a Redis broker', (ms: number) => new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: ms })],
])('%s refuses a timeout that the host cannot count', (_, make) => {
  expect(() => make(2 ** 31)).toThrow('must be at most 2147483647');
});
