import {
  AsyncDelayedOperation,
  BucketRateLimiter,
  DelayedOperation,
  DelayedOperationPurgatory,
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ItemFastSlowRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  RateLimitingQueue,
  SystemTimer,
  TimerTask,
  WithJitterRateLimiter,
  WithMaxWaitRateLimiter,
  WorkQueue,
  type Lease,
} from 'escapement';
import { DiskQueue, DummyBackendQueue, OverflowQueue } from 'escapement/diskqueue';
import {
  Client,
  EmbeddedBroker,
  Inspector,
  PeriodicTaskManager,
  Scheduler,
  ServeMux,
  Server,
  Task,
  type ReceivedTask,
  type TaskContext,
  type TaskInfo,
} from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { folderOfTest } from '../folder.ts';

/** Closes it when the test is over, and returns it. */
export function closing<T extends object>(made: T): T {
  const { close, shutdown } = made as { close?: () => unknown; shutdown?: () => unknown };
  onTestFinished(async () => {
    await (close ?? shutdown)?.call(made);
  });
  return made;
}

class RequestTimeout extends TimerTask {
  readonly request = { path: '/jobs' };

  override run(): void {
    // Nothing.
  }
}

export class Produce extends DelayedOperation {
  readonly offset: number;

  constructor(offset: number) {
    super(1_500);
    this.offset = offset;
  }

  override tryComplete(): boolean {
    return false;
  }

  override onComplete(): void {
    // Nothing.
  }

  override onExpiration(): void {
    // Nothing.
  }
}

class Paid extends AsyncDelayedOperation {
  readonly order = 17;

  override tryCompleteAsync(): Promise<boolean> {
    return Promise.resolve(false);
  }

  override onComplete(): void {
    // Nothing.
  }

  override onExpiration(): void {
    // Nothing.
  }
}

export function timerOf3(): SystemTimer {
  const timer = closing(new SystemTimer({ name: 'http', clock: new ManualClock() }));
  for (const delayMs of [30, 1_000, 2_000]) timer.schedule(delayMs, () => undefined, undefined);
  return timer;
}

function waiting<T extends TimerTask>(task: T): T {
  closing(new SystemTimer({ clock: new ManualClock() })).add(task);
  return task;
}

export function watched<T extends DelayedOperation>(operation: T): T {
  purgatoryOf(operation);
  return operation;
}

function purgatoryOf(operation: DelayedOperation): DelayedOperationPurgatory<string> {
  const timer = closing(new SystemTimer({ clock: new ManualClock() }));
  const purgatory = closing(new DelayedOperationPurgatory<string>('produce', { timer }));
  purgatory.tryCompleteElseWatch(operation, ['a', 'b']);
  return purgatory;
}

const exponential = new ItemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000 });
const bucket = new BucketRateLimiter({ ratePerSecond: 10, burst: 100 });

const EXPONENTIAL = 'ItemExponentialFailureRateLimiter { baseDelayMs: 5, maxDelayMs: 1000, items: 0 }';
const BUCKET = 'BucketRateLimiter { ratePerSecond: 10, burst: 100 }';

export async function leaseOf(item: string): Promise<Lease<string>> {
  const queue = new WorkQueue<string>();
  queue.add(item);
  for await (const lease of queue) return lease;
  throw new Error('no lease');
}

export async function diskQueue(): Promise<DiskQueue> {
  const queue = closing(await DiskQueue.open({ name: 'spool', dataPath: folderOfTest() }));
  await queue.put(Buffer.from('hello'));
  return queue;
}

async function overflowQueue(): Promise<OverflowQueue> {
  const queue = closing(new OverflowQueue({ memorySize: 1, backend: new DummyBackendQueue() }));
  for (const message of ['a', 'b']) await queue.put(Buffer.from(message));
  return queue;
}

export async function brokerOf1(): Promise<EmbeddedBroker> {
  const broker = closing(await EmbeddedBroker.open({ clock: new ManualClock({ wallMs: 5_000 }) }));
  await new Client({ broker }).enqueue(new Task('ping'));
  return broker;
}

const BROKER = "EmbeddedBroker { state: 'open', queues: 1, tasks: 1 }";

export function redis(url: string, password?: string): RedisBroker {
  return closing(new RedisBroker({ url, ...(password === undefined ? {} : { password }) }));
}

export function redisOf(client: Redis): RedisBroker {
  return closing(new RedisBroker({ client }));
}

export function unconnectedClient(password?: string): Redis {
  const options = password === undefined ? {} : { password };
  const client = new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null, ...options });
  client.on('error', () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}

const noConfigs = { getConfigs: () => [] };

/** What a handler is given, and what is known of the task when it is done. */
export async function handled(
  task: Task,
  result?: unknown,
): Promise<{ task: ReceivedTask; context: TaskContext; info: TaskInfo }> {
  const broker = closing(await EmbeddedBroker.open({ clock: new ManualClock({ wallMs: 5_000 }) }));
  const server = closing(new Server({ broker }));
  let given: [ReceivedTask, TaskContext] | undefined;
  await server.start(async (received, context) => {
    given = [received, context];
    if (result !== undefined) await context.writeResult(result);
  });
  const enqueued = await new Client({ broker }).enqueue(task, { taskId: 't1', retentionMs: 60_000 });
  const info = await new Inspector({ broker }).waitFor(enqueued);
  if (given === undefined) throw new Error('not handled');
  return { task: given[0], context: given[1], info };
}

export const sum = new Task('sum', [1, 2], { headers: { trace: 'x' }, maxRetry: 3, timeoutMs: 1_000 });
export const binary = new Task('image', Uint8Array.of(0xff, 0xd8, 0));

const PRINTED: Readonly<Record<string, readonly [make: () => unknown, printed: string | RegExp]>> = {
  SystemTimer: [
    timerOf3,
    "SystemTimer { name: 'http', size: 3, levels: 2, nextExpirationMs: 30, closed: false }",
  ],
  'a subclass of TimerTask': [
    () => waiting(new RequestTimeout(30)),
    "RequestTimeout { delayMs: 30, request: { path: '/jobs' }, pending: true, isCancelled: false }",
  ],
  ManualClock: [
    () => new ManualClock({ wallMs: 9 }),
    'ManualClock { nowMs: 0, wallMs: 9, pendingWakeups: 0 }',
  ],
  DelayedOperationPurgatory: [
    () => purgatoryOf(new Produce(7)),
    "DelayedOperationPurgatory { name: 'produce', watched: 2, watchedKeys: 2, numDelayed: 1, closed: false }",
  ],
  'a subclass of DelayedOperation': [
    () => watched(new Produce(7)),
    'Produce { delayMs: 1500, offset: 7, pending: true, isCancelled: false, isCompleted: false }',
  ],
  'a subclass of AsyncDelayedOperation': [
    () => watched(new Paid(10)),
    'Paid { delayMs: 10, order: 17, pending: true, isCancelled: false, isCompleted: false }',
  ],
  WorkQueue: [
    () => new WorkQueue({ name: 'files', maxSize: 9 }),
    "WorkQueue { name: 'files', length: 0, processing: 0, maxSize: 9, shuttingDown: false }",
  ],
  DelayingQueue: [
    () => new DelayingQueue({ name: 'files' }),
    "DelayingQueue { name: 'files', length: 0, processing: 0, waiting: 0, shuttingDown: false }",
  ],
  RateLimitingQueue: [
    () => new RateLimitingQueue(exponential, { name: 'files' }),
    `RateLimitingQueue { name: 'files', length: 0, processing: 0, waiting: 0, shuttingDown: false, rateLimiter: ${EXPONENTIAL} }`,
  ],
  Lease: [() => leaseOf('web'), "Lease { item: 'web', state: 'held' }"],
  BucketRateLimiter: [() => bucket, BUCKET],
  ItemExponentialFailureRateLimiter: [() => exponential, EXPONENTIAL],
  ItemFastSlowRateLimiter: [
    () => new ItemFastSlowRateLimiter({ fastDelayMs: 5, slowDelayMs: 9, maxFastAttempts: 3 }),
    'ItemFastSlowRateLimiter { fastDelayMs: 5, slowDelayMs: 9, maxFastAttempts: 3, items: 0 }',
  ],
  MaxOfRateLimiter: [
    () => new MaxOfRateLimiter(exponential, bucket),
    `MaxOfRateLimiter { limiters: [ ${EXPONENTIAL}, ${BUCKET} ] }`,
  ],
  WithJitterRateLimiter: [
    () => new WithJitterRateLimiter(bucket),
    `WithJitterRateLimiter { limiter: ${BUCKET}, fraction: 0.5 }`,
  ],
  WithMaxWaitRateLimiter: [
    () => new WithMaxWaitRateLimiter(bucket, 50),
    `WithMaxWaitRateLimiter { limiter: ${BUCKET}, maxDelayMs: 50 }`,
  ],
  DiskQueue: [
    diskQueue,
    /^DiskQueue \{ name: 'spool', dataPath: '.+', depth: 1, bytes: 5, durability: 'always', state: 'open' \}$/,
  ],
  'Delivery of a DiskQueue': [
    async () => (await diskQueue()).receive(),
    "Delivery { bytes: 5, state: 'in flight' }",
  ],
  OverflowQueue: [
    overflowQueue,
    "OverflowQueue { depth: 1, inMemory: 1, memorySize: 1, state: 'open', backend: DummyBackendQueue { depth: 0, dropped: 1, state: 'open' } }",
  ],
  'Delivery of an OverflowQueue': [
    async () => (await overflowQueue()).receive(),
    "Delivery { bytes: 1, state: 'in flight' }",
  ],
  DummyBackendQueue: [
    () => new DummyBackendQueue(),
    "DummyBackendQueue { depth: 0, dropped: 0, state: 'open' }",
  ],
  EmbeddedBroker: [brokerOf1, BROKER],
  RedisBroker: [
    () => redis('redis://localhost:1/2'),
    "RedisBroker { url: 'redis://localhost:1/2', state: 'connecting' }",
  ],
  'RedisBroker of a client that is not connected': [
    () => redisOf(unconnectedClient()),
    "RedisBroker { address: 'localhost:1', state: 'connecting' }",
  ],
  Client: [
    async () => new Client({ broker: await brokerOf1() }),
    `Client { state: 'open', inFlight: 0, broker: ${BROKER} }`,
  ],
  'Client with a URL': [
    () => new Client({ url: 'http://me:s3cret@localhost:1/admin/', headers: { authorization: 's3cret' } }),
    "Client { state: 'open', inFlight: 0, url: 'http://localhost:1/admin' }",
  ],
  Inspector: [
    async () => new Inspector({ broker: await brokerOf1() }),
    `Inspector { state: 'open', broker: ${BROKER} }`,
  ],
  Server: [
    async () => new Server({ broker: await brokerOf1(), concurrency: 10, queues: { low: 1 } }),
    /^Server \{ id: '[-0-9a-f]+', state: 'new', concurrency: 10, active: 0, queues: \{ low: 1 \} \}$/,
  ],
  ServeMux: [
    () => new ServeMux().handle('email:', () => undefined).use((next) => next),
    "ServeMux { patterns: [ 'email:' ], middleware: 1 }",
  ],
  Scheduler: [
    async () => new Scheduler({ broker: await brokerOf1() }),
    /^Scheduler \{ id: '[^']+', state: 'new', location: 'UTC', entries: 0 \}$/,
  ],
  PeriodicTaskManager: [
    async () => new PeriodicTaskManager({ broker: await brokerOf1(), provider: noConfigs }),
    /^PeriodicTaskManager \{ scheduler: Scheduler \{ [^{}]+ \}, state: 'new', entries: 0, syncIntervalMs: 180000 \}$/,
  ],
  Task: [
    () => sum,
    "Task { type: 'sum', payload: '[1,2]', options: { headers: { trace: 'x' }, maxRetry: 3, timeoutMs: 1000 } }",
  ],
  'Task without payload and options': [() => new Task('ping'), "Task { type: 'ping' }"],
  'Task with bytes': [() => binary, "Task { type: 'image', payload: <3 bytes> }"],
  'Task with a long text': [
    () => new Task('log', 'x'.repeat(1_000)),
    `Task { type: 'log', payload: '"${'x'.repeat(99)}…' }`,
  ],
  ReceivedTask: [
    async () => (await handled(sum)).task,
    "ReceivedTask { type: 'sum', payload: '[1,2]', headers: { trace: 'x' } }",
  ],
  'ReceivedTask with data': [
    async () => (await handled(binary)).task.withData({ a: 1 }),
    "ReceivedTask { data: { a: 1 }, type: 'image', payload: <3 bytes> }",
  ],
  TaskContext: [
    async () => (await handled(sum)).context,
    /^TaskContext \{ taskId: 't1', queue: 'default', retryCount: 0, maxRetry: 3, deadlineMs: \d+, leaseEpoch: \d+, headers: \{ trace: 'x' \} \}$/,
  ],
  TaskInfo: [
    async () => (await handled(sum, { sum: 3 })).info,
    "TaskInfo { id: 't1', queue: 'default', type: 'sum', payload: '[1,2]', maxRetry: 3, retried: 0, timeoutMs: 1000, " +
      "retentionMs: 60000, headers: { trace: 'x' }, state: 'completed', completedAt: 1970-01-01T00:00:05.000Z, result: '{\"sum\":3}' }",
  ],
};

/** One object of each class, and what a console prints for it. */
export function printed(): [name: string, make: () => unknown, printed: string | RegExp][] {
  return Object.entries(PRINTED).map(([name, row]) => [name, ...row]);
}
