import { availableParallelism } from 'node:os';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { defaultRetryDelayMs, EmbeddedBroker, Server } from 'escapement/tasks';
import { Registry } from 'prom-client';
import { afterEach, expect, vi } from 'vitest';
import { errorText } from '../../../src/tasks/handler.ts';
import { MessageTask } from '../../../src/tasks/server/run.ts';
import { resolveServerOptions, retryDelayOf } from '../../../src/tasks/server/server-options.ts';
import { raise } from '../support/bench.ts';
import { Held, it } from './support/world.ts';

const broker = await EmbeddedBroker.open();

it('the defaults are those of asynq, but a server checks for due tasks every second', () => {
  expect(resolveServerOptions({ broker })).toMatchObject({
    ...{ concurrency: availableParallelism(), queues: { default: 1 }, strictPriority: false },
    ...{ shutdownTimeoutMs: 8_000, graceMs: 1_000, leaseMs: 30_000, maxRecoveries: 3 },
    ...{ pollIntervalMs: 1_000, delayedTaskCheckIntervalMs: 1_000, healthCheckIntervalMs: 15_000 },
    ...{ groupGracePeriodMs: 60_000, groupMaxDelayMs: 0, groupMaxSize: 0 },
    ...{ janitorIntervalMs: 8_000, janitorBatchSize: 100 },
  });
});

it('later changes of the queues object have no effect', () => {
  const queues: Record<string, number> = { a: 1 };
  const resolved = resolveServerOptions({ broker, queues });
  queues['b'] = 2;
  expect(resolved.queues).toEqual({ a: 1 });
});

it.each<[Record<string, unknown>, string, new () => Error]>([
  [
    { broker: {} },
    'options.broker must be a Broker, such as an EmbeddedBroker or a RedisBroker. Received [object Object]',
    TypeError,
  ],
  [{ concurrency: 0 }, 'options.concurrency must be an integer of at least 1. Received 0', RangeError],
  [{ concurrency: '5' }, "options.concurrency must be a number. Received '5'", TypeError],
  [{ queues: ['a'] }, 'options.queues must be an object such as { mail: 1 }', TypeError],
  [{ limits: new Map() }, 'options.limits must be an object such as', TypeError],
  [{ queues: {} }, 'options.queues must be an object with a queue', TypeError],
  [{ queues: { a: 0 } }, 'options.queues.a must be an integer of at least 1. Received 0', RangeError],
  [{ queues: { ' ': 1 } }, 'a name of options.queues must be a string that is not blank', TypeError],
  [{ queues: { 'a}b': 1 } }, "a name of options.queues must be a queue name without '{' and '}'", TypeError],
  [{ limits: 5 }, 'options.limits must be an object. Received 5', TypeError],
  [
    { limits: { concurrency: 5 } }, // without a queue
    "limits of queue 'concurrency': options.limits.concurrency must be an object. Received 5",
    TypeError,
  ],
  [
    { limits: { perKey: { concurrency: 1 } } }, // without a queue
    'options.limits must be an object of queues, such as { mail: { perKey: … } }',
    TypeError,
  ],
  [{ limits: { ' ': {} } }, 'a name of options.limits must be a string that is not blank', TypeError],
  [
    { limits: { a: { concurrency: 0 } } },
    'options.limits.a.concurrency must be an integer of at least 1. Received 0',
    RangeError,
  ],
  [
    { limits: { a: { perKey: { rate: { tasks: 1, perMs: '1' } } } } },
    "options.limits.a.perKey.rate.perMs must be a number of milliseconds. Received '1'",
    TypeError,
  ],
  [{ strictPriority: 1 }, 'options.strictPriority must be a boolean. Received 1', TypeError],
  [{ retryDelayMs: 5 }, 'options.retryDelayMs must be a function. Received 5', TypeError],
  [{ isFailure: true }, 'options.isFailure must be a function. Received true', TypeError],
  [{ errorHandler: 'x' }, "options.errorHandler must be a function. Received 'x'", TypeError],
  [{ healthCheck: {} }, 'options.healthCheck must be a function', TypeError],
  [{ groupAggregator: 5 }, 'options.groupAggregator must be a function. Received 5', TypeError],
  [{ graceMs: -1 }, 'options.graceMs must be at least 0 ms. Received -1', RangeError],
  [{ leaseMs: 10 }, 'options.leaseMs must be at least 1000 ms. Received 10', RangeError],
  [{ leaseMs: 1e15 }, 'options.leaseMs must be at most 2147483647 ms. Received 1000000000000000', RangeError],
  [
    { shutdownTimeoutMs: NaN },
    'options.shutdownTimeoutMs must be a finite number of milliseconds. Received NaN',
    RangeError,
  ],
  [
    { pollIntervalMs: '1' },
    "options.pollIntervalMs must be a number of milliseconds. Received '1'",
    TypeError,
  ],
  [{ groupMaxSize: 1.5 }, 'options.groupMaxSize must be an integer of at least 1. Received 1.5', RangeError],
  [
    { janitorBatchSize: 0 },
    'options.janitorBatchSize must be an integer of at least 1. Received 0',
    RangeError,
  ],
  [{ maxRecoveries: -1 }, 'options.maxRecoveries must be an integer of at least 0. Received -1', RangeError],
  [{ baseContext: 5 }, 'options.baseContext must be an object. Received 5', TypeError],
  [{ logger: {} }, 'options.logger must be a Logger with debug, info, warn and error', TypeError],
  [{ metrics: {} }, 'metrics must be a MetricsProvider', TypeError],
])('the options %o throw an error with the value received', (options, message, kind) => {
  const make = (): Server => new Server({ broker, ...options });
  expect(make).toThrow(message);
  expect(make).toThrow(kind);
});

const task = new MessageTask({} as never, undefined);

afterEach(() => vi.restoreAllMocks());

/** asynq's own table, in seconds. */
const TABLE = [
  [0, 15, 44],
  [1, 16, 74],
  [2, 31, 118],
  [3, 96, 212],
  [4, 271, 416],
] as const;

it.each(TABLE)('the delay after %d earlier failures is from %d to %d seconds', (retried, least, most) => {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  expect(defaultRetryDelayMs(retried)).toBe(least * 1_000);
  vi.spyOn(Math, 'random').mockReturnValue(0.999_999);
  expect(defaultRetryDelayMs(retried)).toBe(most * 1_000);
});

it('the delay is limited, whatever maxRetry is', () => {
  expect(defaultRetryDelayMs(2 ** 31 - 1)).toBe(100 * 365 * 24 * 3_600_000);
});

it('retryDelayMs receives the number of failures, the error and the task', () => {
  const asked = vi.fn(() => 250);
  const error = new Error('x');
  expect(retryDelayOf(asked, 3, error, task)).toBe(250);
  expect(asked).toHaveBeenCalledWith(3, error, task);
});

it.each([
  ['negative', -5, 0],
  ['endless', Infinity, 100 * 365 * 24 * 3_600_000],
])('a delay that is %s is replaced by the nearest valid one', (_what, delayMs, waitedMs) => {
  expect(retryDelayOf(() => delayMs, 0, undefined, task)).toBe(waitedMs);
});

it.each([NaN, 'soon', undefined])('the delay %s is not valid, so the default is used', (delay) => {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  expect(retryDelayOf(() => delay as number, 1, undefined, task)).toBe(16_000);
});

const mute = Object.defineProperty(new Error(), 'message', { get: raise(new Error('no')) });

class Silent extends Error {
  override name = 'Silent';
}

it.each([
  ['an error without a message', new Silent(), 'Silent'],
  ['an error without anything', Object.assign(new Error(''), { name: '' }), 'unknown error'],
  ['a blank string', ' ', "thrown: ' '"],
  ['a number', 42, 'thrown: 42'],
  ['an object', { status: 503 }, 'thrown: { status: 503 }'],
  ['an error whose message cannot be read', mute, 'unknown error: it cannot be read'],
])('errorText describes %s', (_what, thrown, text) => {
  expect(errorText(thrown)).toBe(text);
});

it('errorText returns well-formed Unicode: a lone surrogate would stop the task from being written', () => {
  expect(errorText(new Error('bad \uD800 text'))).toBe('bad \uFFFD text');
});

it('errorText limits the length and returns well-formed Unicode', () => {
  const text = errorText(new Error('😀'.repeat(10_000)));
  expect(text.length).toBe(8_192);
  expect(text.isWellFormed()).toBe(true);
  expect(text.endsWith('…')).toBe(true);
});

it('the duration of runs is measured by queue, type and outcome, with or without listeners', async ({
  world,
}) => {
  const registry = new Registry();
  const held = new Held();
  const server = await world.start(held.handler, { metrics: prometheusMetrics({ registry }) });
  server.removeAllListeners();
  for (const type of ['a', 'a', 'b']) await world.enqueue(type);
  await world.advance(250);
  held.run(0).resolve();
  held.run(1).reject(new Error('boom'));
  await world.advance(750);
  held.run(2).resolve();
  await world.settle();
  const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('_sum'));
  expect(lines.sort()).toEqual([
    'escapement_task_duration_seconds_sum{queue="default",type="a",outcome="completed"} 0.25',
    'escapement_task_duration_seconds_sum{queue="default",type="a",outcome="retried"} 0.25',
    'escapement_task_duration_seconds_sum{queue="default",type="b",outcome="completed"} 1',
  ]);
});

it('the tasks in progress of all servers are measured until they shut down', async ({ world }) => {
  const registry = new Registry();
  const metrics = prometheusMetrics({ registry });
  const held = new Held();
  const options = { metrics, concurrency: 1, queues: { default: 1, low: 1 } };
  const server = await world.start(held.handler, options);
  const other = await world.start(held.handler, options);
  await world.enqueue();
  await world.enqueue();
  await world.enqueue();
  const read = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('escapement_tasks_in'));
  expect(await read()).toEqual([
    'escapement_tasks_in_progress{queue="default"} 2',
    'escapement_tasks_in_progress{queue="low"} 0',
  ]);
  held.run(0).resolve();
  held.run(1).resolve();
  await world.settle();
  held.run(2).resolve();
  await server.shutdown();
  expect(await read()).toEqual([
    'escapement_tasks_in_progress{queue="default"} 0',
    'escapement_tasks_in_progress{queue="low"} 0',
  ]);
  await other.shutdown();
  expect(await read()).toEqual([]);
});
