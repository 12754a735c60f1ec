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

/** Of a class whose constructor takes options and nothing else. */
function made(Class: new (options: never) => unknown, misspelt: string, meant: string): Case {
  return [Class.name, misspelt, meant, (options) => new Class(options)];
}

/** Of a function that takes options and nothing else. */
function called(take: (options: never) => unknown, misspelt: string, meant: string): Case {
  return [take.name, misspelt, meant, take];
}

const LISTS = ['Pending', 'Active', 'Scheduled', 'Retry', 'Archived', 'Completed'] as const;

const CASES: Case[] = [
  made(core.ManualClock, 'nowMS', 'nowMs'),
  made(core.SystemTimer, 'tickMS', 'tickMs'),
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
  made(core.WorkQueue, 'keyof', 'keyOf'),
  ['WorkQueue.addWhenRoom', 'signals', 'signal', (options) => queue.addWhenRoom('a', options)],
  ['WorkQueue.get', 'abortSignal', 'none', (options) => queue.get(options)],
  ['WorkQueue.shutDownWithDrain', 'sginal', 'signal', (options) => queue.shutDownWithDrain(options)],
  ['WorkQueue.shutDownWithDrain', 'sginal', 'signal', (options) => retrying.shutDownWithDrain(options)],
  ['WorkQueue.leases', 'sginal', 'signal', (options) => queue.leases(options)],
  ['WorkQueue.run', 'concurency', 'concurrency', (options) => queue.run(() => undefined, options)],
  made(core.DelayingQueue, 'maxsize', 'maxSize'),
  made(core.DelayingQueue, 'timr', 'timer'),
  ['RateLimitingQueue', 'metric', 'metrics', (options) => new core.RateLimitingQueue(limiter, options)],
  ['RateLimitingQueue.run', 'maxRetry', 'maxRetries', (options) => retrying.run(() => undefined, options)],
  made(core.BucketRateLimiter, 'bursts', 'burst'),
  made(core.ItemExponentialFailureRateLimiter, 'baseDelay', 'baseDelayMs'),
  made(core.ItemFastSlowRateLimiter, 'maxFastAttempt', 'maxFastAttempts'),
  [
    'WithJitterRateLimiter',
    'fractoin',
    'fraction',
    (options) => new core.WithJitterRateLimiter(limiter, options),
  ],
  called(core.defaultControllerRateLimiter, 'clocks', 'clock'),
  [
    'parallelizeUntil',
    'chunksize',
    'chunkSize',
    (options) => core.parallelizeUntil(1, 1, () => undefined, options),
  ],
  ['DiskQueue.open', 'datapath', 'dataPath', (options) => diskqueue.DiskQueue.open(options)],
  ['DiskQueue.put', 'sginal', 'signal', (options) => messages.put(bytes, options)],
  ['DiskQueue.receive', 'sginal', 'signal', (options) => messages.receive(options)],
  made(diskqueue.OverflowQueue, 'memsize', 'memorySize'),
  ['OverflowQueue.put', 'sginal', 'signal', (options) => overflow.put(bytes, options)],
  ['OverflowQueue.receive', 'sginal', 'signal', (options) => overflow.receive(options)],
  ['DummyBackendQueue.put', 'sginal', 'signal', (options) => dummy.put(bytes, options)],
  ['DummyBackendQueue.receive', 'sginal', 'signal', (options) => dummy.receive(options)],
  ['EmbeddedBroker.open', 'maxArchive', 'maxArchived', (options) => tasks.EmbeddedBroker.open(options)],
  made(tasks.Client, 'brokers', 'broker'),
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
  made(tasks.Inspector, 'borker', 'broker'),
  ...LISTS.map((state): Case => {
    return [
      'Inspector',
      'pagesize',
      'pageSize',
      (options) => inspector[`list${state}Tasks`]('default', options),
    ];
  }),
  ['Inspector', 'pages', 'page', (options) => inspector.listAggregatingTasks('default', 'g', options)],
  ['Inspector', 'pages', 'page', (options) => inspector.listSchedulerEnqueueEvents('id', options)],
  ['Inspector', 'pages', 'page', (options) => inspector.keys('default', options)],
  ['Inspector.deleteQueue', 'froce', 'force', (options) => inspector.deleteQueue('default', options)],
  ['Inspector.repair', 'aply', 'apply', (options) => inspector.repair(options)],
  ['Inspector.scan', 'pagesize', 'pageSize', (options) => inspector.scan('default', options).next()],
  ['Inspector.cancelProcessing', 'outcom', 'outcome', (options) => inspector.cancelProcessing('id', options)],
  ['Inspector.waitFor', 'Queue', 'queue', (options) => inspector.waitFor('id', options)],
  made(tasks.PeriodicTaskManager, 'syncInterval', 'syncIntervalMs'),
  made(tasks.PeriodicTaskManager, 'locaton', 'location'),
  ['PeriodicTaskManager', 'que', 'queue', (options) => startWith({ options })],
  made(tasks.Scheduler, 'backFill', 'backfill'),
  [
    'Scheduler.register',
    'retention',
    'retentionMs',
    (options) => scheduler.register('@every 1m', task, options),
  ],
  ['Scheduler.register', 'ids', 'id', (options) => scheduler.register('@every 1m', task, options)],
  made(tasks.Server, 'retryDelay', 'retryDelayMs'),
  ['Task', 'timeOut', 'timeoutMs', (options) => new tasks.Task('a', undefined, options)],
  ['TaskType', 'shema', 'schema', (options) => new tasks.TaskType('a', options)],
  ['TaskType', 'maxretry', 'maxRetry', (options) => tasks.defineTask('a', options)],
  ['TaskType.task', 'deadlines', 'deadline', (options) => taskType.task(undefined, options)],
  ['copyTasks', 'merged', 'merge', (options) => tasks.copyTasks(broker, broker, options)],
  called(tasks.taskQueueMetrics, 'interval', 'intervalMs'),
  called(dashboard, 'readonly', 'readOnly'),
  called(http.tasksHandler, 'authorise', 'authorize'),
  made(redis.RedisBroker, 'URL', 'url'),
  made(redis.RedisBroker, 'maxarchived', 'maxArchived'),
  called(tracing.openTelemetryTracing, 'traces', 'tracer'),
  called(prometheus.prometheusMetrics, 'regsitry', 'registry'),
  called(otelMetrics.openTelemetryMetrics, 'lables', 'labels'),
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
