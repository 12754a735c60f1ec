import type { Clock } from 'escapement';
import type { Redis } from 'ioredis';
import { RedisBroker } from 'escapement/tasks/redis';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ScanPosition } from '../../../../src/tasks/broker/broker-types.ts';
import { DEQUEUE } from '../../../../src/tasks/broker/redis/dequeue.ts';
import { ENQUEUE } from '../../../../src/tasks/broker/redis/enqueue.ts';
import { TAKE_GROUP } from '../../../../src/tasks/broker/redis/groups.ts';
import { QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { SET_LIMITS } from '../../../../src/tasks/broker/redis/limits.ts';
import { FORWARD, RECOVER } from '../../../../src/tasks/broker/redis/maintenance.ts';
import type { Script } from '../../../../src/tasks/broker/redis/script.ts';
import { ARCHIVE, COMPLETE, RELEASE, RETRY } from '../../../../src/tasks/broker/redis/settle.ts';
import {
  failure,
  idsIn,
  idsOf,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  takeAll,
} from '../../../conformance/broker/support.ts';
import { listenTo } from '../../../conformance/broker/held-tasks.ts';
import { until } from '../../../until.ts';
import { redisForTest, type RedisSetup } from './setup.ts';

const keys = new QueueKeys(QUEUE);
let setup: RedisSetup;
let broker: RedisBroker;
let redis: Redis;

beforeEach(async () => {
  setup = await redisForTest({ isChecked: true });
  ({ broker, redis } = setup);
});

/** Another broker on the same Redis, for the length of the test. */
function openOther(clock?: Clock): RedisBroker {
  const other = new RedisBroker({ url: setup.url, ...(clock && { clock }) });
  onTestFinished(() => other.close());
  return other;
}

async function put(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await broker.enqueue(newTask({ id, key: id.replace(/\d+$/u, '') }));
}

/** The digest by which Redis knows a script. */
async function digestOf(script: Script): Promise<string> {
  let digest = '';
  await script.run({ callBuffer: (_: string, [sha = '']: string[]) => (digest = sha) } as never, [], []);
  return digest;
}

async function ourKeys(): Promise<string[]> {
  return (await redis.keys(`${keys.prefix}x:*`)).map((key) => key.slice(keys.prefix.length)).sort();
}

it('a queue whose tasks never had keys or limits has no key of ours but its epoch', async () => {
  await put('1', '2', '3');
  await broker.enqueue({ ...newTask({ id: '4' }), isNext: true });
  await broker.retry(await take(broker), failure(), broker.clock.wallNow());
  await broker.release(await take(broker));
  await broker.change(QUEUE, { id: '1' }, 'archive');
  await broker.change(QUEUE, { id: '1' }, 'run');
  await broker.forward([QUEUE]);
  expect(await ourKeys()).toEqual(['x:epoch']);
});

// They run most often, and do not pay for keys and limits. To change one on purpose, measure `npm run bench -- redis`
// before and after, run `npm run test:interop`, and copy the digests that the failure shows.
it('the scripts of a queue without keys and limits are those that were measured, byte for byte', async () => {
  const scripts = { ENQUEUE, DEQUEUE, COMPLETE, RETRY, ARCHIVE, RELEASE, RECOVER, FORWARD, TAKE_GROUP };
  const digests: Record<string, string> = {};
  for (const [name, script] of Object.entries(scripts)) digests[name] = await digestOf(script);
  expect(digests).toEqual({
    ARCHIVE: 'da4f86a4a49d6960f3d1f2f26e2ac7fdedaa3adc',
    COMPLETE: 'ec6b5b900f9f588da12fe974b11f2994c41e178c',
    DEQUEUE: '2fe249bb3ece1d5a8c780d7e94d55ce34da44a3c',
    ENQUEUE: 'bae36b42ed0a35fa52eabf3b358065bb37df4dc8',
    FORWARD: 'b6f7f32eef75bcbe62a6eccd2fdd958a8a532611',
    RECOVER: '31c2e5fbe932cdd6fdd4046c6d56264c362fbb83',
    RELEASE: 'ac3fe129c93706b4989d0688100617289b977182',
    RETRY: '860b5c1306009bde566849b2ff7e09c5bd862045',
    TAKE_GROUP: '89ceae327b8de4d76777cc4929a48d94a0ce5093',
  });
});

it('a queue that loses its limits, and never had keys, is as it was before', async () => {
  await broker.setLimits(QUEUE, { concurrency: 1, perKey: { rate: { tasks: 1, perMs: LONG_MS } } });
  await put('1', '2', '3');
  const other = openOther(broker.clock);
  const [task] = await other.dequeue(QUEUE, 1, LONG_MS); // from now on it reads the limits
  await broker.setLimits(QUEUE, undefined);
  if (task !== undefined) await broker.complete(task);
  expect(await takeAll(other)).toEqual(['2', '3']);
  expect(await ourKeys()).toEqual(['x:epoch']);
});

describe('keys and limits of Redis, and programs that have not read them', () => {
  it('limits and keys that one broker sets hold in another one within a second', async () => {
    const other = openOther(broker.clock);
    await put('1', '2');
    expect(await other.dequeue(QUEUE, 1, LONG_MS)).toHaveLength(1);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await setup.advance(1_000);
    expect(await other.dequeue(QUEUE, 1, LONG_MS)).toEqual([]);
    await put('a1', 'a2');
    expect(idsOf(await other.dequeue(QUEUE, 10, LONG_MS))).toEqual(['a1']);
  });

  it.each([
    ['the queue', (perMs: number) => ({ rate: { tasks: 1, perMs } })],
    ['each key', (perMs: number) => ({ perKey: { rate: { tasks: 1, perMs } } })],
  ])(
    'a listener of another broker is notified of a token that a new rate of %s adds sooner',
    async (_, limits) => {
      const other = openOther();
      await other.setLimits(QUEUE, limits(LONG_MS));
      await put('a1', 'a2');
      const heard = await listenTo(other);
      expect(await takeAll(other)).toEqual(['a1']);
      await broker.setLimits(QUEUE, limits(100));
      for (const taken: string[] = []; taken.length === 0; taken.push(...(await takeAll(other)))) {
        await until('the listener is notified', () => heard.length > 0);
        heard.length = 0;
      }
    },
  );

  it('a task with a key that another broker has enqueued is found by a dequeue that finds nothing else', async () => {
    const other = openOther(broker.clock);
    expect(await other.dequeue(QUEUE, 1, LONG_MS)).toEqual([]);
    await put('a1');
    expect(await other.dequeue(QUEUE, 0, LONG_MS)).toEqual([]);
    await setup.advance(400);
    expect(idsOf(await other.dequeue(QUEUE, 1, LONG_MS))).toEqual(['a1']);
  });

  it('scheduled tasks with keys take turns when a broker makes them pending that has not enqueued them', async () => {
    const processAtMs = broker.clock.wallNow() + 1_000;
    const ids = ['a1', 'a2', 'b1'];
    await broker.enqueueMany(ids.map((id) => newTask({ id, key: id.slice(0, 1), processAtMs })));
    const other = openOther(broker.clock);
    await setup.advance(2_000);
    expect(await other.forward([QUEUE])).toBe(3);
    expect(await takeAll(other)).toEqual(['a1', 'b1', 'a2']);
  });

  it('a scheduled task of a first key takes its turn when a broker makes it pending that knew of no keys', async () => {
    await put('1', '2', '3');
    const other = openOther(broker.clock);
    expect(await other.forward([QUEUE])).toBe(0);
    await broker.enqueue(newTask({ id: 'a1', key: 'a', processAtMs: broker.clock.wallNow() + 1_000 }));
    await setup.advance(2_000);
    expect(await other.forward([QUEUE])).toBe(1);
    expect(await takeAll(other)).toEqual(['1', 'a1', '2', '3']);
  });

  it('a key gets one turn when several of its runs end at once', async () => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 2 } });
    await put('a1', 'a2', 'a3', 'a4', 'a5');
    const tasks = await broker.dequeue(QUEUE, 10, LONG_MS);
    await Promise.all(tasks.map((task) => broker.complete(task)));
    await setup.check?.();
    expect(await takeAll(broker)).toEqual(['a3', 'a4']);
  });

  it('a listener is notified of a task behind one that was deleted when it was the last', async () => {
    await broker.setLimits(QUEUE, { concurrency: 5 });
    await put('1');
    await broker.change(QUEUE, { id: '1' }, 'delete');
    const heard = await listenTo(broker);
    await put('2');
    await until('the listener is notified', () => heard.length > 0);
  });

  it('tasks with keys that a Go program has made pending go back to the end of those with their key', async () => {
    await put('a1', 'a2', 'b1');
    const a1 = await take(broker);
    await broker.retry(a1, failure(), broker.clock.wallNow() + 1_000);
    await redis.zrem(keys.retry, 'a1'); // what asynq's forwarder does
    await redis.lpush(keys.pending, 'a1');
    await redis.hset(keys.task('a1'), 'state', 'pending', 'pending_since', `${Date.now()}000000`);
    await broker.enqueue(newTask({ id: '1' }));
    expect(await takeAll(broker)).toEqual(['b1', 'a2', '1', 'a1']);
  });

  it.each([
    ['of the queue', { rate: { tasks: 1, perMs: 1_000 } }],
    ['of each key', { perKey: { rate: { tasks: 1, perMs: 1_000 } } }],
    ['of both', { rate: { tasks: 1, perMs: 1_000 }, perKey: { rate: { tasks: 2, perMs: 2_000, burst: 1 } } }],
  ])(
    'a clock that is set back by a day holds a task back for one token of the rate %s',
    async (_, limits) => {
      await broker.setLimits(QUEUE, limits);
      await put('a1', 'a2', 'a3', 'a4');
      expect(await takeAll(broker)).toEqual(['a1']);
      await setup.advance(-86_400_000);
      for (const id of ['a2', 'a3', 'a4']) {
        expect(await takeAll(broker)).toEqual([]);
        await setup.advance(1_000);
        expect(await takeAll(broker)).toEqual([id]);
      }
    },
  );

  it('a task of a key that comes after the clock was set back by a day is held back for two tokens at most', async () => {
    await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 1, perMs: 1_000 } } });
    await put('a1');
    expect(await takeAll(broker)).toEqual(['a1']);
    await setup.advance(-86_400_000);
    await put('a2');
    await setup.advance(1_000);
    const soon = await takeAll(broker);
    await setup.advance(1_000);
    expect([...soon, ...(await takeAll(broker))]).toEqual(['a2']);
  });

  it('Redis keeps nothing of a key that has all its tokens', async () => {
    await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 1, perMs: 1_000 } } });
    await put('a1', 'b1', 'c1');
    expect(await takeAll(broker)).toHaveLength(3);
    await setup.advance(5_000);
    await put('d1');
    expect(await takeAll(broker)).toEqual(['d1']);
    expect(await redis.zrange(keys.rates, '0', '-1')).toEqual(['d']);
  });

  it('the place of a run that a Go server has recovered is free after the next recovery of ours', async () => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await put('a1', 'a2');
    await take(broker);
    await redis.zrem(keys.lease, 'a1'); // what asynq's recoverer does
    await redis.lrem(keys.active, 1, 'a1');
    await redis.zadd(keys.retry, Math.floor(Date.now() / 1_000) + 3_600, 'a1');
    await redis.hset(keys.task('a1'), 'state', 'retry');
    const heard = await listenTo(broker);
    expect(await takeAll(broker)).toEqual([]);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
    await until('the listener is notified', () => heard.length > 0);
    expect(await takeAll(broker)).toEqual(['a2']);
    await redis.hdel(keys.task('a1'), 'x:lease'); // which Go leaves, and the check refuses
  });

  it('the place of a task without key is free when a Go server has ended its run', async () => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await put('1', '2');
    await take(broker);
    expect(await takeAll(broker)).toEqual([]);
    await redis.zrem(keys.lease, '1'); // what asynq's `done` does
    await redis.lrem(keys.active, 1, '1');
    await redis.del(keys.task('1'));
    expect(await takeAll(broker)).toEqual(['2']);
  });

  it('a task without key that a Go client adds counts under the limits of a queue', async () => {
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1, rate: { tasks: 2, perMs: LONG_MS } } });
    await put('1', 'a1');
    await redis.lmove(keys.pending, 'elsewhere', 'LEFT', 'LEFT');
    await redis.lmove('elsewhere', keys.pending, 'LEFT', 'LEFT');
    await redis.multi().lrem(keys.ring, 1, '').hdel(keys.firsts, '').exec();
    const [first, second] = await broker.dequeue(QUEUE, 10, LONG_MS);
    expect(idsOf([first, second].filter((task) => task !== undefined))).toEqual(['a1', '1']);
    await put('2');
    expect(await takeAll(broker)).toEqual([]);
    if (second !== undefined) await broker.complete(second);
    expect(await takeAll(broker)).toEqual(['2']);
  });
});

it.each([
  ['the concurrency', { perKey: { concurrency: 1 } }],
  ['the rate', { perKey: { rate: { tasks: 1, perMs: LONG_MS } } }],
])(
  'a key that %s has held back gets its turn after the next recovery if limits were removed by a process that was killed meanwhile',
  async (_, limits) => {
    await broker.setLimits(QUEUE, limits);
    await put('a1', 'a2');
    const task = await take(broker);
    await SET_LIMITS.run(redis, [keys.prefix], ['', 0, '', '', '', '', '', '', '', '']); // the first step of `setLimits`
    await broker.complete(task);
    const heard = await listenTo(broker);
    expect(await broker.recover([QUEUE], 0, LONG_MS)).toEqual([]);
    await until('the listener is notified', () => heard.length > 0);
    expect(await takeAll(broker)).toEqual(['a2']);
  },
);

describe('a queue of Redis with keys', () => {
  it('keys with any bytes and any length are distinct', async () => {
    const odd = ['a', 'a:', 'a:1', '1:a', ':', '\0', 'ä', 'a'.repeat(256), '{b}', ' '];
    const tasks = odd.flatMap((key, n) => [1, 2].map((nth) => newTask({ id: `${n}:${nth}`, key })));
    await broker.enqueueMany(tasks);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    expect((await takeAll(broker)).sort()).toEqual(odd.map((_, n) => `${n}:1`));
    const shown = await broker.keys(QUEUE, { page: 1, size: 100 });
    expect(shown.map(({ key }) => key).sort()).toEqual([...odd].sort());
    for (const stats of shown) expect(stats).toMatchObject({ pending: 1, active: 1, heldBy: 'concurrency' });
  });

  it('thousands of keys are leased, shown, held and freed in pieces', async () => {
    const tasks = Array.from({ length: 2_500 }, (_, n) => newTask({ id: `${n}`, key: `key-${n % 1_250}` }));
    await broker.enqueueMany(tasks);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    expect(await takeAll(broker)).toHaveLength(1_250);
    expect((await broker.queueStats(QUEUE)).held).toEqual({ concurrency: 1_250, rate: 0 });
    const page = await broker.keys(QUEUE, { page: 2, size: 1_100 });
    expect(page).toHaveLength(150);
    await broker.setLimits(QUEUE, { perKey: { concurrency: 2 } });
    expect((await broker.queueStats(QUEUE)).held).toEqual({ concurrency: 0, rate: 0 });
    expect(await takeAll(broker)).toHaveLength(1_250);
  });

  it('thousands of keys whose turn has come, and which have no task, leave their turns in pieces', async () => {
    await put('a1');
    await redis.lpush(keys.ring, ...Array.from({ length: 9_000 }, (_, n) => `key-${n}`));
    expect(await takeAll(broker)).toEqual(['a1']);
    expect(await redis.llen(keys.ring)).toBe(0);
  });

  it('the tasks of thousands of keys are listed and scanned in pieces', async () => {
    const ids = Array.from({ length: 5_000 }, (_, n) => `key-${n % 2_500}:${Math.floor(n / 2_500)}`);
    await broker.enqueueMany(ids.map((id) => newTask({ id, key: id.slice(0, -2) })));
    const inTurns = Array.from({ length: 2_500 }, (_, n) => [`key-${n}:0`, `key-${n}:1`]).flat();
    const page = async (page: number, size: number): Promise<string[]> =>
      idsOf(await broker.tasks(QUEUE, 'pending', { page, size }));
    expect(await page(1, 10_000)).toEqual(inTurns);
    expect(await page(15, 333)).toEqual(inTurns.slice(14 * 333, 15 * 333));
    const found: string[] = [];
    let position: ScanPosition | undefined;
    do {
      const { tasks, next } = await broker.scan(QUEUE, ['pending'], 70, position);
      found.push(...idsOf(tasks));
      position = next;
    } while (position !== undefined);
    expect(found.sort()).toEqual(ids.sort());
  });

  it('the estimate of the memory has the tasks of keys that are held', async () => {
    const payload = new Uint8Array(10_000);
    await broker.enqueueMany(['a1', 'a2', 'a3'].map((id) => newTask({ id, key: 'a', payload })));
    await broker.setLimits(QUEUE, { perKey: { concurrency: 1 } });
    await take(broker);
    expect((await broker.queueStats(QUEUE)).memoryBytes).toBeGreaterThan(3 * payload.length);
  });

  it('all pending tasks are archived, whether they have a key or not', async () => {
    await put('a1', '1', 'b1', 'a2', '2');
    expect(await broker.change(QUEUE, { state: 'pending' }, 'archive')).toBe(5);
    expect(await idsIn(broker, 'archived')).toHaveLength(5);
    await put('c1');
    expect(await takeAll(broker)).toEqual(['c1']);
  });

  it('a repair finds tasks with keys that no server would find', async () => {
    await put('a1', 'a2', 'b1', 'c1');
    await redis.hset(keys.firsts, 'a', (await redis.rpop(`${keys.nextPrefix}a`)) ?? '');
    await redis.lrem(keys.ring, '1', 'b');
    await redis.del(keys.task('c1'));
    const found = await broker.repair(QUEUE, { apply: true });
    expect(found.map(({ kind, id }) => `${id} ${kind}`).sort()).toEqual([
      ' wrong-count',
      ' wrong-count',
      'a1 task-in-no-list',
      'c1 id-without-task',
    ]);
    expect(await broker.repair(QUEUE, { apply: true })).toEqual([]);
    expect(await takeAll(broker)).toEqual(['a2', 'b1', 'a1']);
  });
});
