import fc from 'fast-check';
import { Redis } from 'ioredis';
import type { LeasedTask, TaskSet } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { afterAll, beforeAll, expect } from 'vitest';
import { seededRandom } from '../../src/tasks/broker/flaky-broker.ts';
import { freshDatabase, type FreshDatabase } from '../redis/redis-case.ts';
import { checkRedis } from '../tasks/support/check-redis.ts';
import { Member, QUEUES } from './redis-crowd.ts';
import { dumpOf } from '../tasks/support/redis-dump.ts';
import { testProperty } from '../runs.ts';
import { history, maxArchived } from './broker-actions.ts';
import { BrokerWorld } from './broker-world.ts';
import { RedisSides } from './redis-side.ts';

const MEMBERS = 4;
/** In turns of what is done at once: leases and sets that were got in one are used in the next. */
const TURNS = 4;
const ACTS = 100;

/** What a broker may refuse. */
const REFUSALS = new Set([
  ...['ERR_TASK_DUPLICATE', 'ERR_TASK_ID_CONFLICT', 'ERR_TASK_NOT_FOUND', 'ERR_TASK_STATE', 'ERR_LEASE_LOST'],
  ...['ERR_QUEUE_NOT_FOUND', 'ERR_QUEUE_STATE', 'ERR_QUEUE_NOT_EMPTY'],
]);

let database: FreshDatabase;
let redis: Redis;
let brokers: RedisBroker[];
let sides: RedisSides;

beforeAll(async () => {
  sides = await RedisSides.start();
  database = await freshDatabase();
  redis = new Redis(database.url);
  const options = { url: database.url, maxArchived: 3, archiveRetentionMs: 60_000 };
  brokers = Array.from({ length: MEMBERS }, () => new RedisBroker(options));
});

afterAll(async () => {
  await Promise.all(brokers.map((broker) => broker.close()));
  redis.disconnect();
  await database.dispose();
  await sides[Symbol.asyncDispose]();
});

testProperty(
  'when many brokers change the same queues at once, no change is half done',
  fc.asyncProperty(fc.integer(), (seed) => runCrowd(seededRandom(seed))),
  20,
  { endOnFailure: true }, // What happens at once is different each time, so that there is nothing to shrink.
);

testProperty(
  'the broker on Redis behaves like arrays that are searched, whatever is done to it',
  fc.asyncProperty(maxArchived, history, (max, actions) => BrokerWorld.run(sides.open, max, actions)),
  60,
);

async function runCrowd(random: () => number): Promise<void> {
  const keys = await redis.keys('asynq:*');
  if (keys.length > 0) await redis.del(...keys);
  const leases: LeasedTask[] = [];
  const sets: TaskSet[] = [];
  const members = brokers.map((broker) => new Member(broker, random, leases, sets));
  for (let turn = 0; turn < TURNS; turn++) {
    const acts = Array.from({ length: ACTS / MEMBERS }, () => members.map((member) => member.act())).flat();
    for (const outcome of await Promise.allSettled(acts)) {
      if (outcome.status === 'fulfilled') continue;
      const { code } = outcome.reason as { code?: string };
      if (code === undefined || !REFUSALS.has(code)) throw outcome.reason;
    }
    // A queue that has active tasks cannot be removed.
    if (turn % 2 === 1) await members[0]?.endAll();
    checkRedis(await dumpOf(redis));
    const [first] = brokers;
    for (const queue of (await first?.queues()) ?? []) {
      expect(QUEUES).toContain(queue);
      expect(await first?.repair(queue, { apply: false })).toEqual([]);
    }
  }
}
