import { fromBinary } from '@bufbuild/protobuf';
import { Scheduler, Server, Task } from 'escapement/tasks';
import { describe, expect, it } from 'vitest';
import {
  schedulerKey,
  SCHEDULERS_KEY,
  serverKey,
  SERVERS_KEY,
  workersKey,
} from '../../../../src/tasks/broker/redis/keys.ts';
import {
  SchedulerEntrySchema,
  ServerInfoSchema,
  WorkerInfoSchema,
} from '../../../../src/tasks/wire/asynq-messages.gen.ts';
import { newTask, take } from '../../../conformance/broker/support.ts';
import { until } from '../../../until.ts';
import { AT_ONCE, BYTES, failure, HOUR_MS, keys, QUEUE, ruleWorlds, server, worker } from './rule-world.ts';

// The rest of the rules of compatibility.test.ts: those about single values.

const world = ruleWorlds();

describe('rule 4: there is a timeout or a deadline', () => {
  const written = async (options: object): Promise<bigint[]> => {
    const { id } = await world().client.enqueue(new Task('t'), options);
    const { timeout, deadline } = await world().messageOf(id);
    return [timeout, deadline];
  };

  it.each([
    ['none', {}, [1_800n, 0n]],
    ['a timeout', { timeoutMs: 1_000 }, [1n, 0n]],
    ['a timeout of less than a second', { timeoutMs: 1 }, [1n, 0n]],
    ['a deadline', { deadline: 5_000 }, [0n, 5n]],
    ['a deadline of less than a second', { deadline: 1 }, [0n, 1n]],
    ['any time', { timeoutMs: 0 }, [3_155_760_000n, 0n]],
    ['a deadline that is none', { deadline: 0 }, [3_155_760_000n, 0n]],
  ])('a message has a timeout or a deadline if the client is given %s', async (_, options, expected) => {
    expect(await written(options)).toEqual(expected);
  });

  it('a task without a time limit has none after its retries either', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t'), { timeoutMs: 0 });
    const leased = await take(broker);
    expect(leased.message.timeoutMs).toBe(0);
    await broker.retry(leased, failure, 0);
    expect((await world().messageOf(id)).timeout).toBe(3_155_760_000n);
    expect((await broker.task(QUEUE, id)).message.timeoutMs).toBe(0);
  });
});

describe('rule 5: strings are UTF-8', () => {
  it.each(['half \ud83d of a pair', '\udc00'])(
    'an error message that is not well-formed UTF-8 is stored as UTF-8: %j',
    async (error) => {
      const { broker } = world();
      for (const way of ['retry', 'archive'] as const) {
        const { id } = (await broker.enqueue(newTask())).message;
        const leased = await take(broker);
        if (way === 'retry') await broker.retry(leased, { ...failure, error }, HOUR_MS);
        else await broker.archive(leased, { ...failure, error });
        expect((await world().messageOf(id)).errorMsg).toBe(error.toWellFormed());
      }
    },
  );

  it('a task is settled whatever its handler throws', async () => {
    const { broker } = world();
    const one = new Server({ broker, retryDelayMs: () => HOUR_MS, concurrency: 1 });
    await one.start((task) => {
      if (task.type === 'half') throw new Error('\ud83d');
      throw BYTES; // eslint-disable-line @typescript-eslint/only-throw-error -- some do
    });
    const ids = [
      (await world().client.enqueue(new Task('bytes'))).id,
      (await world().client.enqueue(new Task('half'))).id,
    ];
    for (const id of ids) {
      await until('it waits for a retry', async () => (await broker.task(QUEUE, id)).state === 'retry');
      expect((await world().messageOf(id)).errorMsg.isWellFormed()).toBe(true);
    }
    await one.shutdown();
  });

  it('names that are not valid are rejected before anything is written', async () => {
    const { broker, redis } = world();
    const half = '\ud83d';
    for (const options of [{ queue: half }, { taskId: half }, { group: half }, { headers: { a: half } }]) {
      await expect(world().client.enqueue(new Task('t'), options)).rejects.toThrow(/well-formed/);
    }
    expect(() => new Task(half)).toThrow(/well-formed/);
    for (const message of [{ id: half }, { type: half }, { uniqueKey: half }, { group: half }]) {
      await expect(broker.enqueue(newTask(message))).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
    }
    expect(await redis.keys('*')).toEqual([]);
  });
});

describe('rule 6: counts fit 32 bits', () => {
  const MOST = 2 ** 31 - 1;

  it('the maximum number of retries is stored as a 32-bit number', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t', null, { maxRetry: MOST }));
    expect((await world().messageOf(id)).retry).toBe(MOST);
    await expect(world().client.enqueue(new Task('t'), { maxRetry: MOST + 1 })).rejects.toThrow(RangeError);
    const tooMany = broker.enqueue(newTask({ maxRetry: MOST + 1 }));
    await expect(tooMany).rejects.toMatchObject({ code: 'ERR_WIRE_MESSAGE' });
  });

  it('a task whose count of retries is at the maximum is archived', async () => {
    const { broker } = world();
    const { id } = (await broker.enqueue(newTask({ maxRetry: MOST, retried: MOST }))).message;
    const one = new Server({ broker });
    await one.start(() => {
      throw new Error('again');
    });
    await until('it is archived', async () => (await broker.task(QUEUE, id)).state === 'archived');
    await one.shutdown();
  });

  it('a server with unlimited concurrency is stored with the greatest 32-bit number', async () => {
    const { broker, redis } = world();
    const greatest = Number.MAX_SAFE_INTEGER;
    const state = { ...server, concurrency: greatest, queues: { [QUEUE]: greatest }, workers: [] };
    await broker.announceServer(() => state, 10_000);
    const info = fromBinary(ServerInfoSchema, (await redis.getBuffer(serverKey('h', 7, 's'))) ?? BYTES);
    expect([info.concurrency, info.queues]).toEqual([MOST, { [QUEUE]: MOST }]);
  });
});

describe("rule 7: never is Go's zero time", () => {
  const GO_ZERO = { seconds: -62_135_596_800n, nanos: 0 };

  it('a schedule entry that never ticks has no zero time of Go', async () => {
    const { broker, redis } = world();
    const entry = { id: 'e', spec: '@yearly', taskType: 't', payload: BYTES, options: [] };
    await broker.announceScheduler(
      'one',
      () => [{ ...entry, nextEnqueueAtMs: 0, prevEnqueueAtMs: 0 }],
      10_000,
    );
    const [bytes] = await redis.lrangeBuffer(schedulerKey('one'), 0, -1);
    const { prevEnqueueTime, nextEnqueueTime } = fromBinary(SchedulerEntrySchema, bytes ?? BYTES);
    expect([prevEnqueueTime, nextEnqueueTime]).toMatchObject([GO_ZERO, GO_ZERO]);
    expect(await broker.scheduleEntries()).toMatchObject([{ nextEnqueueAtMs: 0, prevEnqueueAtMs: 0 }]);
  });

  it('a scheduler that has just started has no zero time of Go', async () => {
    const { broker, redis } = world();
    const scheduler = new Scheduler({ broker });
    scheduler.register('@yearly', new Task('t'));
    await scheduler.start();
    const [bytes] = await redis.lrangeBuffer(schedulerKey(scheduler.id), 0, -1);
    expect(fromBinary(SchedulerEntrySchema, bytes ?? BYTES).prevEnqueueTime).toMatchObject(GO_ZERO);
    await scheduler.shutdown();
    expect(await redis.exists(SCHEDULERS_KEY)).toBe(0);
  });

  it('a run without a deadline has no zero time of Go', async () => {
    const { broker, redis } = world();
    await broker.announceServer(() => ({ ...server, workers: [worker] }), 10_000);
    const bytes = await redis.hgetBuffer(workersKey('h', 7, 's'), 'id');
    expect(fromBinary(WorkerInfoSchema, bytes ?? BYTES).deadline).toMatchObject(GO_ZERO);
  });
});

describe('rule 9: values are bytes', () => {
  it('payloads and results are stored and read as bytes', async () => {
    const { broker, redis } = world();
    const { id } = await world().client.enqueue(new Task('t', BYTES, { retentionMs: HOUR_MS }));
    expect(Buffer.from((await world().messageOf(id)).payload)).toEqual(BYTES);
    const leased = await take(broker);
    expect(Buffer.from(leased.message.payload)).toEqual(BYTES);
    await broker.writeResult(leased, BYTES);
    await broker.complete(leased);
    expect(await redis.hgetBuffer(keys.task(id), 'result')).toEqual(BYTES);
    const { message, result } = await broker.task(QUEUE, id);
    expect([Buffer.from(message.payload), Buffer.from(result ?? [])]).toEqual([BYTES, BYTES]);
    const [listed] = await broker.tasks(QUEUE, 'completed', { page: 1, size: 10 });
    expect(Buffer.from(listed?.result ?? [])).toEqual(BYTES);
  });

  it('retries, groups and changes by an inspector keep the bytes of payloads', async () => {
    const { broker } = world();
    const { id } = await world().client.enqueue(new Task('t', 'other', { processInMs: HOUR_MS }));
    await broker.updatePayload(QUEUE, id, BYTES);
    await broker.change(QUEUE, { id }, 'run');
    await broker.retry(await take(broker), failure, HOUR_MS);
    expect(Buffer.from((await world().messageOf(id)).payload)).toEqual(BYTES);
    await world().client.enqueue(new Task('t', BYTES, { group: 'g' }));
    const { set } = await broker.takeGroup(QUEUE, 'g', AT_ONCE, HOUR_MS);
    expect(set?.messages.map(({ payload }) => Buffer.from(payload))).toEqual([BYTES]);
  });

  it('payloads of workers and schedule entries are stored as bytes', async () => {
    const { broker } = world();
    const entry = { id: 'e', spec: '@yearly', taskType: 't', payload: BYTES, options: [] };
    await broker.announceServer(() => ({ ...server, workers: [worker] }), 10_000);
    await broker.announceScheduler(
      'one',
      () => [{ ...entry, nextEnqueueAtMs: 1, prevEnqueueAtMs: 1 }],
      10_000,
    );
    const [shown] = await broker.servers();
    expect(Buffer.from(shown?.workers[0]?.payload ?? [])).toEqual(BYTES);
    expect(Buffer.from((await broker.scheduleEntries())[0]?.payload ?? [])).toEqual(BYTES);
    await broker.withdrawServer('s');
    expect(await world().redis.exists(SERVERS_KEY)).toBe(0);
  });
});
