import { readdirSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import * as core from 'escapement';
import { dashboard } from 'escapement/dashboard';
import * as diskqueue from 'escapement/diskqueue';
import * as otelMetrics from 'escapement/metrics/otel';
import * as prometheus from 'escapement/metrics/prometheus';
import * as tasks from 'escapement/tasks';
import * as http from 'escapement/tasks/http';
import * as tracing from 'escapement/tasks/otel';
import * as redis from 'escapement/tasks/redis';
import * as testing from 'escapement/testing';
import * as promises from 'escapement/timers/promises';
import { folderOfFile } from '../folder.ts';

const clock = new core.ManualClock();
const timer = new core.SystemTimer({ clock });
const purgatory = new core.DelayedOperationPurgatory<string>('purgatory', { timer });
const queue = new core.WorkQueue<string>();
const limiter = new core.MaxOfRateLimiter<string>(core.defaultControllerRateLimiter());
const retrying = new core.RateLimitingQueue<string>(limiter);
const folder = folderOfFile();
const messages = await diskqueue.DiskQueue.open({ name: 'messages', dataPath: folder });
const overflow = new diskqueue.OverflowQueue({ memorySize: 0, backend: messages });
const dummy = new diskqueue.DummyBackendQueue();
const broker = await tasks.EmbeddedBroker.open({ clock });
const client = new tasks.Client({ broker });
const inspector = new tasks.Inspector({ broker });
const scheduler = new tasks.Scheduler({ broker });
const task = new tasks.Task('a');
const schema = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
} as const;
const taskType = tasks.defineTask('a', { schema });
const bytes = Buffer.from('a');

afterAll(async () => {
  await messages.close();
});

/** Rejects as `enqueueMany` rejects its one entry. */
async function enqueueEntry(entry: never, options?: tasks.TaskOptions): Promise<unknown> {
  const [outcome] = await client.enqueueMany([entry], options);
  if (outcome?.status === 'rejected') throw outcome.reason;
  return outcome;
}

/** Starts a periodic task manager with one config. */
async function startWith(config: object): Promise<void> {
  const provider = { getConfigs: () => [{ cronSpec: '@every 1m', task, ...config }] };
  const manager = new tasks.PeriodicTaskManager({ broker, provider });
  await manager.start();
}

/** The part that takes options, a misspelt option, the option that the error suggests, and the call. */
type Case = [subject: string, misspelt: string, meant: string, call: (options: never) => unknown];

const CASES: Case[] = [
  ['ManualClock', 'nowMS', 'nowMs', (options) => new core.ManualClock(options)],
  ['SystemTimer', 'tickMS', 'tickMs', (options) => new core.SystemTimer(options)],
  ['SystemTimer.sleep', 'singal', 'signal', (options) => timer.sleep(1, undefined, options)],
  ['SystemTimer.close', 'pendin', 'pending', (options) => timer.close(options)],
  [
    'DelayedOperationPurgatory',
    'timers',
    'timer',
    (options) => new core.DelayedOperationPurgatory('p', options),
  ],
  [
    'DelayedOperationPurgatory.wait',
    'timeout',
    'timeoutMs',
    (options) => purgatory.wait(['a'], () => 1, options),
  ],
  ['DelayedOperationPurgatory.close', 'Pending', 'pending', (options) => purgatory.close(options)],
  ['WorkQueue', 'keyof', 'keyOf', (options) => new core.WorkQueue(options)],
  ['WorkQueue.addWhenRoom', 'signals', 'signal', (options) => queue.addWhenRoom('a', options)],
  ['WorkQueue.get', 'abortSignal', 'none', (options) => queue.get(options)],
  ['WorkQueue.shutDownWithDrain', 'sginal', 'signal', (options) => queue.shutDownWithDrain(options)],
  ['WorkQueue.shutDownWithDrain', 'sginal', 'signal', (options) => retrying.shutDownWithDrain(options)],
  ['WorkQueue.leases', 'sginal', 'signal', (options) => queue.leases(options)],
  ['WorkQueue.run', 'concurency', 'concurrency', (options) => queue.run(() => undefined, options)],
  ['DelayingQueue', 'maxsize', 'maxSize', (options) => new core.DelayingQueue(options)],
  ['DelayingQueue', 'timr', 'timer', (options) => new core.DelayingQueue(options)],
  ['RateLimitingQueue', 'metric', 'metrics', (options) => new core.RateLimitingQueue(limiter, options)],
  ['RateLimitingQueue.run', 'maxRetry', 'maxRetries', (options) => retrying.run(() => undefined, options)],
  ['BucketRateLimiter', 'bursts', 'burst', (options) => new core.BucketRateLimiter(options)],
  [
    'ItemExponentialFailureRateLimiter',
    'baseDelay',
    'baseDelayMs',
    (options) => new core.ItemExponentialFailureRateLimiter(options),
  ],
  [
    'ItemFastSlowRateLimiter',
    'maxFastAttempt',
    'maxFastAttempts',
    (options) => new core.ItemFastSlowRateLimiter(options),
  ],
  [
    'WithJitterRateLimiter',
    'fractoin',
    'fraction',
    (options) => new core.WithJitterRateLimiter(limiter, options),
  ],
  [
    'defaultControllerRateLimiter',
    'clocks',
    'clock',
    (options) => core.defaultControllerRateLimiter(options),
  ],
  [
    'parallelizeUntil',
    'chunksize',
    'chunkSize',
    (options) => core.parallelizeUntil(1, 1, () => undefined, options),
  ],
  ['DiskQueue.open', 'datapath', 'dataPath', (options) => diskqueue.DiskQueue.open(options)],
  ['DiskQueue.put', 'sginal', 'signal', (options) => messages.put(bytes, options)],
  ['DiskQueue.receive', 'sginal', 'signal', (options) => messages.receive(options)],
  ['OverflowQueue', 'memsize', 'memorySize', (options) => new diskqueue.OverflowQueue(options)],
  ['OverflowQueue.put', 'sginal', 'signal', (options) => overflow.put(bytes, options)],
  ['OverflowQueue.receive', 'sginal', 'signal', (options) => overflow.receive(options)],
  ['DummyBackendQueue.put', 'sginal', 'signal', (options) => dummy.put(bytes, options)],
  ['DummyBackendQueue.receive', 'sginal', 'signal', (options) => dummy.receive(options)],
  ['EmbeddedBroker.open', 'maxArchive', 'maxArchived', (options) => tasks.EmbeddedBroker.open(options)],
  ['Client', 'brokers', 'broker', (options) => new tasks.Client(options)],
  [
    'Client',
    'timeout',
    'timeoutMs',
    (options) => new tasks.Client({ url: 'http://x', ...(options as object) }),
  ],
  ['Client.enqueue', 'maxRetries', 'maxRetry', (options) => client.enqueue(task, options)],
  ['Client.enqueueMany', 'processInMS', 'processInMs', (options) => client.enqueueMany([task], options)],
  ['Client', 'que', 'queue', (options) => enqueueEntry({ task, options } as never)],
  [
    'Client.enqueueMany',
    'que',
    'queue',
    (options) => enqueueEntry({ task, options } as never, { queue: 'a' }),
  ],
  ['Inspector', 'borker', 'broker', (options) => new tasks.Inspector(options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listPendingTasks('default', options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listActiveTasks('default', options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listScheduledTasks('default', options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listRetryTasks('default', options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listArchivedTasks('default', options)],
  ['Inspector', 'pagesize', 'pageSize', (options) => inspector.listCompletedTasks('default', options)],
  ['Inspector', 'pages', 'page', (options) => inspector.listAggregatingTasks('default', 'g', options)],
  ['Inspector', 'pages', 'page', (options) => inspector.listSchedulerEnqueueEvents('id', options)],
  ['Inspector', 'pages', 'page', (options) => inspector.keys('default', options)],
  ['Inspector.deleteQueue', 'froce', 'force', (options) => inspector.deleteQueue('default', options)],
  ['Inspector.repair', 'aply', 'apply', (options) => inspector.repair(options)],
  ['Inspector.scan', 'pagesize', 'pageSize', (options) => inspector.scan('default', options).next()],
  ['Inspector.cancelProcessing', 'outcom', 'outcome', (options) => inspector.cancelProcessing('id', options)],
  ['Inspector.waitFor', 'Queue', 'queue', (options) => inspector.waitFor('id', options)],
  [
    'PeriodicTaskManager',
    'syncInterval',
    'syncIntervalMs',
    (options) => new tasks.PeriodicTaskManager(options),
  ],
  ['PeriodicTaskManager', 'locaton', 'location', (options) => new tasks.PeriodicTaskManager(options)],
  ['PeriodicTaskManager', 'que', 'queue', (options) => startWith({ options })],
  ['Scheduler', 'backFill', 'backfill', (options) => new tasks.Scheduler(options)],
  [
    'Scheduler.register',
    'retention',
    'retentionMs',
    (options) => scheduler.register('@every 1m', task, options),
  ],
  ['Scheduler.register', 'ids', 'id', (options) => scheduler.register('@every 1m', task, options)],
  ['Server', 'retryDelay', 'retryDelayMs', (options) => new tasks.Server(options)],
  ['Task', 'timeOut', 'timeoutMs', (options) => new tasks.Task('a', undefined, options)],
  ['TaskType', 'shema', 'schema', (options) => new tasks.TaskType('a', options)],
  ['TaskType', 'maxretry', 'maxRetry', (options) => tasks.defineTask('a', options)],
  ['TaskType.task', 'deadlines', 'deadline', (options) => taskType.task(undefined, options)],
  ['copyTasks', 'merged', 'merge', (options) => tasks.copyTasks(broker, broker, options)],
  ['taskQueueMetrics', 'interval', 'intervalMs', (options) => tasks.taskQueueMetrics(options)],
  ['dashboard', 'readonly', 'readOnly', (options) => dashboard(options)],
  ['tasksHandler', 'authorise', 'authorize', (options) => http.tasksHandler(options)],
  ['RedisBroker', 'URL', 'url', (options) => new redis.RedisBroker(options)],
  ['RedisBroker', 'maxarchived', 'maxArchived', (options) => new redis.RedisBroker(options)],
  ['openTelemetryTracing', 'traces', 'tracer', (options) => tracing.openTelemetryTracing(options)],
  ['prometheusMetrics', 'regsitry', 'registry', (options) => prometheus.prometheusMetrics(options)],
  ['openTelemetryMetrics', 'lables', 'labels', (options) => otelMetrics.openTelemetryMetrics(options)],
  ['flakyBroker', 'seeds', 'seed', (options) => testing.flakyBroker(broker, options)],
];

/** Options inside of options, and entries of lists. */
const NESTED: [message: string, call: () => unknown][] = [
  [
    'QueueLimits: limits.perkey is not an option. Did you mean perKey?',
    () => inspector.setLimits('default', { perkey: {} } as never),
  ],
  [
    'Rate: options.limits.default.rate.per is not an option. Did you mean perMs?',
    () => new tasks.Server({ broker, limits: { default: { rate: { tasks: 1, per: 1 } as never } } }),
  ],
  [
    'Scheduler: options.backfill.maxAge is not an option. Did you mean maxAgeMs?',
    () => new tasks.Scheduler({ broker, backfill: { maxAge: 1 } as never }),
  ],
  [
    'Scheduler.register: options.backfill.maxTick is not an option. Did you mean maxTicks?',
    () => scheduler.register('@every 1m', task, { backfill: { maxTick: 1 } as never }),
  ],
  [
    'flakyBroker: options.operations.enque is not an option. Did you mean enqueue?',
    () => testing.flakyBroker(broker, { operations: { enque: {} } as never }),
  ],
  [
    'flakyBroker: options.operations.enqueue.failrate is not an option. Did you mean failRate?',
    () => testing.flakyBroker(broker, { operations: { enqueue: { failrate: 1 } as never } }),
  ],
  [
    'Client.enqueueMany: entry.option is not an option. Did you mean options?',
    () => enqueueEntry({ task, option: {} } as never),
  ],
  [
    'PeriodicTaskManager: config.option is not an option. Did you mean options?',
    () => startWith({ option: {} }),
  ],
];

/** Exported functions and classes whose options, if any, are not checked. */
const WITHOUT_OPTIONS = [
  ...['AsyncDelayedOperation', 'DelayedOperation', 'TimerTask'], // a delay
  ...['EscapementError', 'RevokeTask', 'SkipRetry'], // these ignore unknown options, as `Error` does
  ...['MaxOfRateLimiter', 'WithMaxWaitRateLimiter', 'ServeMux', 'defaultRetryDelayMs', 'parseCronSpec'],
  ...['checkBroker', 'checkBrokerLog', 'checkPurgatory', 'checkQueue', 'checkSegments', 'checkTimer'],
  ...['timeoutSignal', 'withTimeout'],
  'timeoutSignal',
  'withTimeout',
];

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return expect.fail('nothing was thrown');
}

describe('an unknown option', () => {
  test.each(CASES)('%s rejects %s and suggests %s', async (subject, misspelt, meant, call) => {
    const advice = meant === 'none' ? '. Known options: signal' : `. Did you mean ${meant}?`;
    const error = await errorOf(() => call({ [misspelt]: undefined } as never));
    expect(error).toMatchObject({
      name: 'TypeError',
      code: 'ERR_UNKNOWN_OPTION',
      message: `${subject}: options.${misspelt} is not an option${advice}`,
    });
  });

  test.each(NESTED)('%s', async (message, call) => {
    expect(await errorOf(call)).toMatchObject({ name: 'TypeError', code: 'ERR_UNKNOWN_OPTION', message });
  });

  test('an unknown option is rejected before anything changes', async () => {
    expect([timer.size, purgatory.watched, queue.length, messages.depth, dummy.dropped]).toEqual([
      0, 0, 0, 0, 0,
    ]);
    expect([queue.shuttingDown, retrying.shuttingDown]).toEqual([false, false]);
    expect(scheduler.entries()).toEqual([]);
    expect(await inspector.queues()).toEqual([]);
    const files = readdirSync(folder);
    const wrong = { name: 'other', dataPath: folder, durabilty: 'os' };
    await expect(diskqueue.DiskQueue.open(wrong)).rejects.toThrow('Did you mean durability?');
    expect(readdirSync(folder)).toEqual(files);
    timer.schedule(0, () => undefined); // it was not closed
  });

  test('every exported function and class that takes options is tested here', () => {
    const entries = [core, diskqueue, otelMetrics, prometheus, tasks, http, tracing, redis, testing];
    const exported = entries.flatMap((entry) =>
      Object.entries(entry as Record<string, unknown>).flatMap(([name, value]) =>
        typeof value === 'function' ? [name] : [],
      ),
    );
    const tried = CASES.map(([subject]) => subject.split('.')[0]);
    const untried = exported.filter((name) => !tried.includes(name) && !WITHOUT_OPTIONS.includes(name));
    expect(untried).toEqual(['defineTask']); // TaskType is
  });

  test('escapement/timers ignores unknown options, as the host does', async () => {
    expect(await promises.setTimeout(1, 'value', { sginal: 5 } as never)).toBe('value');
  });
});
