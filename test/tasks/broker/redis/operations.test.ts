import { runInNewContext } from 'node:vm';
import { setImmediate as turn } from 'node:timers/promises';
import { EscapementError } from 'escapement';
import { RedisBroker } from 'escapement/tasks/redis';
import { ReplyError } from 'ioredis';
import { beforeEach, describe, expect, it, onTestFinished, test } from 'vitest';
import { QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { NOTIFICATIONS } from '../../../../src/tasks/broker/redis/notifications.ts';
import { Coalescer } from '../../../../src/tasks/broker/redis/redis-access.ts';
import { toBrokerError } from '../../../../src/tasks/broker/redis/redis-errors.ts';
import { CALLS } from '../../../conformance/broker/closing.ts';
import { newTask } from '../../../conformance/broker/support.ts';

const LEASED = { message: newTask().message, epoch: 1, recoveries: 0 };

/** Each operation of a RedisBroker, with arguments that are valid. */
const OPERATIONS: Readonly<Record<string, (broker: RedisBroker) => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(CALLS).map(([name, call]) => [name, (broker: RedisBroker) => call(broker, LEASED)]),
  ),
  info: (broker) => broker.info(),
  redisInfo: (broker) => broker.redisInfo(),
};

function unreachable(): RedisBroker {
  const broker = new RedisBroker({ url: 'redis://127.0.0.1:1', timeoutMs: 30 });
  onTestFinished(() => broker.close());
  return broker;
}

test.each<[when: string, code: string, meanwhile: (broker: RedisBroker) => unknown]>([
  ['Redis cannot be reached', 'ERR_BROKER_UNAVAILABLE', () => undefined],
  ['the broker is closed while it waits', 'ERR_BROKER_CLOSED', (broker) => broker.close()],
])('each operation names itself in its error when %s', async (_, code, meanwhile) => {
  const broker = unreachable();
  const all = Object.entries(OPERATIONS).map(async ([operation, run]) => {
    await expect(run(broker), operation).rejects.toMatchObject({ code, op: `RedisBroker.${operation}` });
  });
  await meanwhile(broker);
  await Promise.all(all);
});

test('a listener subscribes to the channels of all queues in one round trip', () => {
  const asked: string[] = [];
  const subscribe = (channel: string): Promise<void> => {
    asked.push(channel);
    return new Promise(() => undefined);
  };
  const keysOf = (queue: string): QueueKeys => new QueueKeys(queue);
  const redis = { keysOf, listeners: new Set(), connection: { channels: { subscribe } } };
  void NOTIFICATIONS.subscribe(redis as never, { work: () => undefined }, ['a', 'b', 'c']);
  expect(asked).toEqual(['a', 'b', 'c'].map((queue) => keysOf(queue).workChannel));
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

function replyError(message: string): Error {
  return new (ReplyError as new (message: string) => Error)(message);
}

const hostError = (syscall: string, code: string): Error =>
  Object.assign(new Error(`${syscall} ${code} there`), { code, syscall });
const named = (name: string, message = 'something'): Error => Object.assign(new Error(message), { name });

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
    hostError('connect', 'ECONNREFUSED'),
    hostError('read', 'ECONNRESET'),
    hostError('getaddrinfo', 'ENOTFOUND'),
    new Error('Connection is closed.'),
    new Error('Command timed out'),
    new Error("Stream isn't writeable and enableOfflineQueue options is false"),
    new Error("Cluster isn't ready and enableOfflineQueue options is false"),
    new Error('None of startup nodes is available'),
    new Error('Too many Cluster redirections. Last error: ReplyError: CLUSTERDOWN'),
    new Error('All sentinels are unreachable and retry is disabled.'),
    new Error('Unknown RESP type 72 "H". Please report this.'),
    new Error('Protocol error, got "H" as reply type byte. Please report this.'),
    new Error('Command queue state error. If you can reproduce this, please report it. Last reply: OK'),
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
  ])('an error that does not come from Redis is returned unchanged: %s', (error) => {
    expect(toBrokerError(error)).toBe(error);
  });

  it('an error of the host that is of another realm, as under Jest, becomes ERR_BROKER_UNAVAILABLE', () => {
    const source = "Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' })";
    const error: unknown = runInNewContext(source);
    expect(toBrokerError(error)).toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE', cause: error });
  });

  it('the message of a lost connection does not mention the retry limit of ioredis', () => {
    const error = named(
      'MaxRetriesPerRequestError',
      'Reached the max retries per request limit (which is 0).',
    );
    const message = 'Redis is unavailable: the connection was lost before the answer';
    expect(toBrokerError(error)).toMatchObject({ message });
  });

  it('the message includes the error of the last node of a cluster', () => {
    const lastNodeError = new Error('ERR cluster support disabled');
    const error = named('ClusterAllFailedError', 'Failed to refresh slots cache.');
    const message = 'Redis is unavailable: Failed to refresh slots cache. ERR cluster support disabled';
    expect(toBrokerError(Object.assign(error, { lastNodeError }))).toMatchObject({ message });
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
        new Promise((resolve, fail) => {
          calls.push({ key, items, answer: resolve.bind(undefined, items.map(String)), fail });
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
    const answers = askMany(20_000);
    await turn();
    expect(sizes()).toEqual(Array<number>(10).fill(500));
    for (let at = 0; at < 40; at++) {
      calls[at]?.answer();
      await turn();
    }
    expect(sizes()).toEqual(Array<number>(40).fill(500));
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

  it('items that are submitted while others wait share the next batch with them', async () => {
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
    expect(sizes().slice(10)).toEqual([1 + 3]);
    for (const { answer } of calls) answer();
    expect(await Promise.all(others)).toEqual(['0', '1', '2']);
    await first;
  });

  it('pending items of a key fail when the broker is unavailable, and those of other keys run', async () => {
    const here = askMany(6_000, 'gone');
    await turn();
    const there = askMany(1_000, 'there');
    const late = askMany(1, 'gone');
    await turn();
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

  it('items that were just submitted do not fail with a batch before them', async () => {
    const first = askMany(1);
    await turn();
    const second = askMany(1);
    calls[0]?.fail(UNAVAILABLE);
    await turn();
    calls[1]?.answer();
    expect([...(await first), ...(await second)]).toMatchObject([
      { status: 'rejected' },
      { status: 'fulfilled' },
    ]);
  });

  it('the batches of several keys take turns', async () => {
    const answers = [askMany(1_500, 'many'), askMany(1, 'few')];
    await turn();
    expect(calls.map(({ key }) => key)).toEqual(['many', 'few', 'many', 'many']);
    for (const { answer } of calls) answer();
    await Promise.all(answers);
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
