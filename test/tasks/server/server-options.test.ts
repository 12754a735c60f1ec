import { EmbeddedBroker, Server } from 'escapement/tasks';
import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { resolveServerOptions } from '../../../src/tasks/server/server-options.ts';

const broker = await EmbeddedBroker.open();

describe('options', () => {
  it('the defaults are those of asynq', () => {
    expect(resolveServerOptions({ broker })).toMatchObject({
      concurrency: availableParallelism(),
      queues: { default: 1 },
      queueNames: ['default'],
      strictPriority: false,
      shutdownTimeoutMs: 8_000,
      graceMs: 1_000,
      pollIntervalMs: 1_000,
      delayedTaskCheckIntervalMs: 5_000,
      healthCheckIntervalMs: 15_000,
      groupGracePeriodMs: 60_000,
      groupMaxDelayMs: 0,
      groupMaxSize: 0,
      janitorIntervalMs: 8_000,
      janitorBatchSize: 100,
      leaseMs: 30_000,
      maxRecoveries: 3,
    });
  });

  it('later changes of the queues object have no effect', () => {
    const queues: Record<string, number> = { a: 1 };
    const resolved = resolveServerOptions({ broker, queues });
    queues['b'] = 2;
    expect(resolved.queues).toEqual({ a: 1 });
  });
});

describe('an invalid option', () => {
  it.each<[Record<string, unknown>, string, new () => Error]>([
    [{ broker: {} }, 'options.broker must be a Broker. Received [object Object]', TypeError],
    [{ concurrency: 0 }, 'options.concurrency must be an integer of at least 1. Received 0', RangeError],
    [{ concurrency: '5' }, "options.concurrency must be a number. Received '5'", TypeError],
    [{ queues: {} }, 'options.queues must be an object with a queue', TypeError],
    [{ queues: { a: 0 } }, 'options.queues.a must be an integer of at least 1. Received 0', RangeError],
    [{ queues: { ' ': 1 } }, 'a name of options.queues must be a string that is not blank', TypeError],
    [
      { queues: { 'a}b': 1 } },
      "a name of options.queues must be a queue name without '{' and '}'",
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
    [
      { groupMaxSize: 1.5 },
      'options.groupMaxSize must be an integer of at least 1. Received 1.5',
      RangeError,
    ],
    [
      { janitorBatchSize: 0 },
      'options.janitorBatchSize must be an integer of at least 1. Received 0',
      RangeError,
    ],
    [
      { maxRecoveries: -1 },
      'options.maxRecoveries must be an integer of at least 0. Received -1',
      RangeError,
    ],
    [{ baseContext: 5 }, 'options.baseContext must be an object. Received 5', TypeError],
    [{ logger: {} }, 'options.logger must be a Logger with debug, info, warn and error', TypeError],
    [{ metrics: {} }, 'metrics must be a MetricsProvider', TypeError],
  ])('the options %o throw an error with the value received', (options, message, kind) => {
    const make = (): Server => new Server({ broker, ...options });
    expect(make).toThrow(message);
    expect(make).toThrow(kind);
  });
});
