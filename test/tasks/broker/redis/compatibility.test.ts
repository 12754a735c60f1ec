import { fromBinary } from '@bufbuild/protobuf';
import { once } from 'node:events';
import { Client, Scheduler, Task, type TaskInfo, type ScheduleTick } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { beforeEach, describe, expect, it } from 'vitest';
import { QUEUES_KEY, QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { TaskMessageSchema } from '../../../../src/tasks/wire/asynq-messages.gen.ts';
import { LONG_MS, newTask, putInto, putIntoEach, QUEUE, take } from '../../../conformance/broker/support.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

/*
 * What must hold for asynq beside us, rule by rule, by what is in Redis; test/interop asks asynq itself. `checkQueues` checks rules 1 to
 * 3 (scores are whole seconds, `pending_since` is digits, no id is without its hash) and the names of rule 12 after each test of the
 * conformance suite. Rules 4, 6 and 7 are about the bytes of messages (test/tasks/wire), and rule 9, that values are bytes, holds for
 * every broker (test/conformance). Two rules leave nothing to test. Rule 10 is about the text of an error that asynq's own scripts
 * raise: those that Go calls are Go's, and ours answer with numbers. Rule 11 says that scripts need not be the same.
 */

const keys = new QueueKeys(QUEUE);
const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };

let setup: RedisSetup;
let client: Client;

beforeEach(async () => {
  setup = await redisForTest({ isChecked: true });
  client = new Client({ broker: setup.broker });
});

/** Returns the protobuf message of a task of the default queue. */
async function messageOf(id: string): Promise<ReturnType<typeof fromBinary<typeof TaskMessageSchema>>> {
  const bytes = await setup.redis.hgetBuffer(keys.task(id), 'msg');
  if (bytes === null) throw new Error(`${id} has no msg`);
  return fromBinary(TaskMessageSchema, bytes);
}

describe('rule 5: strings are UTF-8', () => {
  it('names that are not valid are rejected before anything is written', async () => {
    const { broker, redis } = setup;
    const half = '\ud83d';
    for (const options of [{ queue: half }, { taskId: half }, { group: half }, { headers: { a: half } }]) {
      await expect(client.enqueue(new Task('t'), options)).rejects.toThrow(/well-formed/);
    }
    expect(() => new Task(half)).toThrow(/well-formed/);
    for (const message of [{ id: half }, { type: half }, { uniqueKey: half }, { group: half }]) {
      await expect(broker.enqueue(newTask(message))).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
    }
    expect(await redis.keys('*')).toEqual([]);
  });
});

describe('rule 8: a queue with tasks is registered', () => {
  it('a queue is registered when a task, with any options, or a tick is enqueued', async () => {
    const options = [{}, { processInMs: LONG_MS }, { group: 'g' }, { uniqueTtlMs: LONG_MS }];
    for (const [nth, each] of options.entries())
      await client.enqueue(new Task('t', null, { queue: `q${nth}` }), each);
    await setup.broker.enqueueTick(newTask({ queue: 'q4' }), { entryKey: 'e', atMs: 1 });
    expect((await setup.redis.smembers(QUEUES_KEY)).sort()).toEqual(['q0', 'q1', 'q2', 'q3', 'q4']);
  });

  it('a queue that another process has removed is registered by the next task', async () => {
    const { broker, redis } = setup;
    const { id } = await client.enqueue(new Task('t'));
    await broker.change(QUEUE, { id }, 'delete');
    const other = new RedisBroker({ url: setup.url });
    await other.removeQueue(QUEUE, { force: false });
    await other.close();
    expect(await redis.smembers(QUEUES_KEY)).toEqual([]);
    await client.enqueue(new Task('t'));
    expect(await redis.smembers(QUEUES_KEY)).toEqual([QUEUE]);
  });
});

describe('rule 12: our additions are where Go ignores them', () => {
  it('messages have only the fields of asynq', async () => {
    const { broker } = setup;
    const { id } = await client.enqueue(new Task('t', null, { headers: { a: 'b' }, retentionMs: LONG_MS }));
    expect((await messageOf(id)).$unknown).toBeUndefined();
    const leased = await take(broker);
    await broker.writeProgress(leased, '1');
    await broker.complete(leased);
    const message = await messageOf(id);
    expect([message.$unknown, message.headers]).toEqual([undefined, { a: 'b' }]);
  });
});

describe('rule 13: generated ids are safe in URLs', () => {
  it('the ids of a task, a tick and an entry have only characters that are safe in URLs', async () => {
    const { broker } = setup;
    const { id } = await client.enqueue(new Task('t'));
    const scheduler = new Scheduler({ broker });
    const tick = once(scheduler, 'enqueued') as Promise<[TaskInfo, ScheduleTick]>;
    const entry = scheduler.register('@every 1s', new Task('t', { any: '/:run' }, { queue: 'another' }));
    await scheduler.start();
    await setup.advance(1_000);
    const ids = [id, (await tick)[0].id, entry];
    await scheduler.shutdown();
    // asynqmon's own verbs are words: `…/ID:run`.
    for (const each of ids) expect(each).toMatch(/^[\da-f-]{32,36}(:\d+)?$/);
  });
});

describe('rule 14: a cluster has all keys of a queue together', () => {
  it('every key of a queue has its hash tag, and scripts use no other key except the set of queues', async () => {
    const { broker, redis } = setup;
    await putIntoEach(broker);
    await putInto(broker, 'aggregating', { group: 'taken', uniqueKey: 'asynq:{default}:unique:t:' });
    await broker.takeGroup(QUEUE, 'taken', AT_ONCE, LONG_MS);
    await broker.enqueueTick(newTask(), { entryKey: 'e', atMs: 1 });
    await broker.pause(QUEUE);
    const all = await redis.keys('*');
    expect(all.length).toBeGreaterThan(15);
    expect(all.filter((key) => !key.startsWith('asynq:{default}:'))).toEqual([QUEUES_KEY]);
  });
});
