import { setImmediate as turn } from 'node:timers/promises';
import { EscapementError } from 'escapement';
import { EmbeddedBroker, Server, type ServerOptions } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import type { BrokerOperation } from 'escapement/testing';
import { ReplyError } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { Coalescer } from '../../../../src/tasks/broker/redis/coalescer.ts';
import { toBrokerError } from '../../../../src/tasks/broker/redis/redis-errors.ts';
import { failure, newTask, QUEUE } from '../../../conformance/broker/support.ts';

const TASK = newTask({ id: 'a' });
const LEASED = { message: TASK.message, epoch: 1, recoveries: 0 };
const LIMITS = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };
const PAGE = { page: 1, size: 1 };
const SERVER = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queues: { [QUEUE]: 1 }, strictPriority: false },
  ...{ status: 'active' as const, startedAtMs: 1, workers: [] },
};

/** Each operation of a RedisBroker, with arguments that are valid. */
const OPERATIONS: Record<BrokerOperation | 'info' | 'redisInfo', (broker: RedisBroker) => Promise<unknown>> =
  {
    ping: (broker) => broker.ping(),
    info: (broker) => broker.info(),
    redisInfo: (broker) => broker.redisInfo(),
    enqueue: (broker) => broker.enqueue(TASK),
    enqueueMany: async (broker) => {
      const [outcome] = await broker.enqueueMany([TASK]);
      if (outcome?.status === 'rejected') throw outcome.reason;
    },
    enqueueTick: (broker) => broker.enqueueTick(TASK, { entryKey: 'e', atMs: 1 }),
    lastTickMs: (broker) => broker.lastTickMs(QUEUE, 'e'),
    dequeue: (broker) => broker.dequeue(QUEUE, 1, 1),
    complete: (broker) => broker.complete(LEASED),
    retry: (broker) => broker.retry(LEASED, failure(), 1),
    archive: (broker) => broker.archive(LEASED, failure()),
    release: (broker) => broker.release(LEASED),
    discard: (broker) => broker.discard(LEASED),
    extendLeases: (broker) => broker.extendLeases([LEASED], 1),
    writeResult: (broker) => broker.writeResult(LEASED, new Uint8Array(1)),
    writeProgress: (broker) => broker.writeProgress(LEASED, '1'),
    forward: (broker) => broker.forward([QUEUE]),
    recover: (broker) => broker.recover([QUEUE], 0, 1),
    deleteExpired: (broker) => broker.deleteExpired([QUEUE], 1),
    groups: (broker) => broker.groups(QUEUE),
    takeGroup: (broker) => broker.takeGroup(QUEUE, 'g', LIMITS, 1),
    replaceSet: (broker) => broker.replaceSet({ id: 's', queue: QUEUE, group: 'g', messages: [] }, TASK),
    reclaimSets: (broker) => broker.reclaimSets([QUEUE]),
    subscribe: (broker) => broker.subscribe({ work: () => undefined }, [QUEUE]),
    cancel: (broker) => broker.cancel({ taskId: 'a', queue: QUEUE, outcome: 'retry' }, 1),
    announceServer: (broker) => broker.announceServer(() => SERVER, 1),
    withdrawServer: (broker) => broker.withdrawServer('s'),
    servers: (broker) => broker.servers(),
    announceScheduler: (broker) => broker.announceScheduler('s', () => [], 1),
    withdrawScheduler: (broker) => broker.withdrawScheduler('s'),
    scheduleEntries: (broker) => broker.scheduleEntries(),
    recordEnqueueEvent: (broker) => broker.recordEnqueueEvent('e', { taskId: 'a', atMs: 1 }),
    enqueueEvents: (broker) => broker.enqueueEvents('e', PAGE),
    limits: (broker) => broker.limits(QUEUE),
    setLimits: (broker) => broker.setLimits(QUEUE, { concurrency: 1 }),
    keys: (broker) => broker.keys(QUEUE, PAGE),
    queues: (broker) => broker.queues(),
    queueStats: (broker) => broker.queueStats(QUEUE),
    history: (broker) => broker.history(QUEUE, 1),
    task: (broker) => broker.task(QUEUE, 'a'),
    tasks: (broker) => broker.tasks(QUEUE, 'pending', PAGE),
    scan: (broker) => broker.scan(QUEUE, ['pending'], 1),
    change: (broker) => broker.change(QUEUE, { id: 'a' }, 'delete'),
    updatePayload: (broker) => broker.updatePayload(QUEUE, 'a', new Uint8Array(1)),
    repair: (broker) => broker.repair(QUEUE, { apply: false }),
    pause: (broker) => broker.pause(QUEUE),
    resume: (broker) => broker.resume(QUEUE),
    removeQueue: (broker) => broker.removeQueue(QUEUE, { force: true }),
  };

describe.each(Object.entries(OPERATIONS))('RedisBroker.%s', (operation, run) => {
  let broker: RedisBroker;

  beforeEach(() => {
    broker = new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: 30 });
  });
  afterEach(() => broker.close());

  it('the operation names itself in its error when Redis cannot be reached', async () => {
    await expect(run(broker)).rejects.toMatchObject({
      code: 'ERR_BROKER_UNAVAILABLE',
      op: `RedisBroker.${operation}`,
    });
  });

  it('the operation names itself in its error when the broker is closed while it waits', async () => {
    const running = run(broker);
    await broker.close();
    await expect(running).rejects.toMatchObject({
      code: 'ERR_BROKER_CLOSED',
      op: `RedisBroker.${operation}`,
    });
  });

  it('the operation names itself in its error when the broker is closed', async () => {
    await broker.close();
    await expect(run(broker)).rejects.toMatchObject({
      code: 'ERR_BROKER_CLOSED',
      op: `RedisBroker.${operation}`,
    });
  });
});

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((broker) => broker.close()));
});

function unreachable(): RedisBroker {
  const broker = new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: 30 });
  opened.push(broker);
  return broker;
}

describe('the op of an error', () => {
  test('enqueueMany names itself in the reason of each refused task', async () => {
    const broker = await EmbeddedBroker.open();
    opened.push(broker);
    const [first, second] = await broker.enqueueMany([newTask({ id: 'a' }), newTask({ id: 'a' })]);
    expect(first).toMatchObject({ status: 'fulfilled' });
    expect(second).toMatchObject({
      status: 'rejected',
      reason: { code: 'ERR_TASK_ID_CONFLICT', op: 'EmbeddedBroker.enqueueMany' },
    });
  });

  test('operations that share one failed request to Redis each name themselves', async () => {
    const broker = unreachable();
    const [single, many] = await Promise.allSettled([
      broker.enqueue(newTask({ id: 'a' })),
      broker.enqueueMany([newTask({ id: 'b' })]),
    ]);
    const code = 'ERR_BROKER_UNAVAILABLE';
    expect(single).toMatchObject({ reason: { code, op: 'RedisBroker.enqueue' } });
    expect(many).toMatchObject({ value: [{ reason: { code, op: 'RedisBroker.enqueueMany' } }] });
  });
});

function replyError(message: string): Error {
  return new (ReplyError as new (message: string) => Error)(message);
}

const named = (name: string): Error => Object.assign(new Error('something'), { name });

describe('an error of Redis', () => {
  it.each([
    replyError('LOADING Redis is loading the dataset in memory'),
    replyError("READONLY You can't write against a read only replica."),
    replyError("READONLY You can't write against a read only replica. script: 0a1b, on @user_script:1."),
    replyError(
      "ERR Error running script (call to f_0a): @user_script:1: -READONLY You can't write against it.",
    ),
    replyError('CLUSTERDOWN Hash slot not served'),
    replyError('MASTERDOWN Link with MASTER is down'),
    replyError('TRYAGAIN Multiple keys request during rehashing of slot'),
    replyError('MOVED 866 127.0.0.1:7001'),
    replyError('BUSY Redis is busy running a script.'),
    replyError('OOM command not allowed when used memory > maxmemory.'),
    replyError('NOREPLICAS Not enough good replicas to write.'),
    replyError('MISCONF Redis is configured to save RDB snapshots'),
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' }),
    Object.assign(new Error('getaddrinfo ENOTFOUND there'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
    new Error('Connection is closed.'),
    new Error('Command timed out'),
    new Error("Stream isn't writeable and enableOfflineQueue options is false"),
    new Error("Cluster isn't ready and enableOfflineQueue options is false"),
    new Error('None of startup nodes is available'),
    new Error('Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN'),
    new Error('All sentinels are unreachable and retry is disabled.'),
    named('MaxRetriesPerRequestError'),
    named('ClusterAllFailedError'),
    named('AbortError'),
  ])('an error that may be temporary becomes ERR_BROKER_UNAVAILABLE: %s', (error) => {
    const said = toBrokerError(error);
    expect(said).toBeInstanceOf(EscapementError);
    expect(said).toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE', cause: error });
  });

  it.each([
    replyError('NOAUTH Authentication required.'),
    replyError("NOPERM this user has no permissions to run the 'eval' command"),
    replyError('ERR the word -READONLYISH in the middle'),
    replyError('NOT FOUND'),
  ])('a reply that is permanent becomes ERR_BROKER_REFUSED: %s', (error) => {
    const message = `Redis refuses: ${error.message}`;
    expect(toBrokerError(error)).toMatchObject({ code: 'ERR_BROKER_REFUSED', message, cause: error });
  });

  it('a key of a wrong type becomes ERR_WIRE_MESSAGE', () => {
    const error = replyError('WRONGTYPE Operation against a key holding the wrong kind of value');
    expect(toBrokerError(error)).toMatchObject({ code: 'ERR_WIRE_MESSAGE', message: error.message });
  });

  it.each([
    new TypeError('client.nothing is not a function'),
    new Error('something else'),
    new EscapementError('ERR_TASK_NOT_FOUND', 'Connection is closed.'),
    'no error at all',
    undefined,
  ])('an error that is none of Redis is returned unchanged: %s', (error) => {
    expect(toBrokerError(error)).toBe(error);
  });

  it('the message of a lost connection does not mention the retry limit of ioredis', () => {
    const error = Object.assign(new Error('Reached the max retries per request limit (which is 0).'), {
      name: 'MaxRetriesPerRequestError',
    });
    expect(toBrokerError(error)).toMatchObject({
      message: 'Redis is unavailable: the connection was lost before the answer',
    });
  });

  it('the message includes the error of the last node of a cluster', () => {
    const error = Object.assign(new Error('Failed to refresh slots cache.'), {
      name: 'ClusterAllFailedError',
      lastNodeError: new Error('ERR This instance has cluster support disabled'),
    });
    expect(toBrokerError(error)).toMatchObject({
      message:
        'Redis is unavailable: Failed to refresh slots cache. ERR This instance has cluster support disabled',
    });
  });
});

describe('coalescer', () => {
  /** A batch, and how to settle it. */
  interface Call {
    readonly key: string;
    readonly items: readonly number[];
    readonly answer: () => void;
    readonly fail: (error: Error) => void;
  }

  const UNAVAILABLE = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no broker', { op: 'test' });

  let calls: Call[];
  let coalescer: Coalescer<number, string>;

  beforeEach(() => {
    calls = [];
    coalescer = new Coalescer(
      (key, items) =>
        new Promise((resolve, reject) => {
          const answer = (): void => {
            resolve(items.map(String));
          };
          calls.push({ key, items, answer, fail: reject });
        }),
      (item) => item,
    );
  });

  function askMany(count: number, key = 'k', item = 0): Promise<PromiseSettledResult<string>[]> {
    return Promise.allSettled(Array.from({ length: count }, () => coalescer.submit(key, item)));
  }

  const sizes = (): number[] => calls.map(({ items }) => items.length);

  it('items that are submitted in one turn share a batch', async () => {
    const answers = Promise.all([1, 2, 3].map((item) => coalescer.submit('k', item)));
    await turn();
    expect(calls).toMatchObject([{ key: 'k', items: [1, 2, 3] }]);
    calls[0]?.answer();
    expect(await answers).toEqual(['1', '2', '3']);
  });

  it('no more items are in progress than Redis can answer in time', async () => {
    const answers = askMany(100_000);
    await turn();
    expect(sizes()).toEqual(Array<number>(10).fill(500));
    for (let at = 0; at < 200; at++) {
      calls[at]?.answer();
      await turn();
    }
    expect(sizes()).toEqual(Array<number>(200).fill(500));
    expect((await answers).every(({ status }) => status === 'fulfilled')).toBe(true);
  });

  it('the bytes in progress are limited, and an item above the limit has a batch of its own', async () => {
    const answers = askMany(3, 'k', 100_000_000);
    await turn();
    expect(sizes()).toEqual([1]);
    calls[0]?.answer();
    await turn();
    expect(sizes()).toEqual([1, 1]);
    calls[1]?.answer();
    await turn();
    calls[2]?.answer();
    expect(await answers).toHaveLength(3);
  });

  it('items that are submitted while batches wait share the next batch', async () => {
    const first = askMany(5_000 + 1);
    await turn();
    const others = [];
    for (let each = 0; each < 3; each++) {
      others.push(...[coalescer.submit('k', each)]);
      await turn();
    }
    expect(calls).toHaveLength(10);
    calls[0]?.answer();
    await turn();
    expect(sizes().slice(10)).toEqual([1, 3]);
    for (const { answer } of calls) answer();
    expect(await Promise.all(others)).toEqual(['0', '1', '2']);
    await first;
  });

  it('pending items of a key fail when the broker is unavailable, and those of other keys run', async () => {
    const here = askMany(6_000, 'gone');
    const there = askMany(1_000, 'there');
    await turn();
    const late = askMany(1, 'gone');
    for (const { fail } of [...calls]) fail(UNAVAILABLE);
    const outcomes = [...(await here), ...(await late)];
    expect(outcomes.every((one) => one.status === 'rejected' && one.reason === UNAVAILABLE)).toBe(true);
    expect(calls.slice(10)).toMatchObject([{ key: 'there' }, { key: 'there' }]);
    for (const { answer } of calls) answer();
    expect((await there).every(({ status }) => status === 'fulfilled')).toBe(true);
    const again = coalescer.submit('gone', 7);
    await turn();
    calls.at(-1)?.answer();
    expect(await again).toBe('7');
  });

  it('a batch that fails does not stop the others', async () => {
    const answers = askMany(5_500);
    await turn();
    calls[0]?.fail(new Error('refused'));
    await turn();
    for (const { answer } of calls) answer();
    const failed = (await answers).filter(({ status }) => status === 'rejected');
    expect(failed).toHaveLength(500);
  });
});

test('leaseThread is an option of the Redis broker, and must be a boolean', () => {
  expect(() => new RedisBroker({ url: 'redis://localhost:1', leaseThread: 'no' as never })).toThrow(
    "options.leaseThread must be a boolean. Received 'no'",
  );
});

test('leaseThread is not an option of a server', async () => {
  const broker = await EmbeddedBroker.open();
  expect(() => new Server({ broker, leaseThread: false } as ServerOptions)).toThrow(/leaseThread/);
});
