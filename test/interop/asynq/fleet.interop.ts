import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Task, type EnqueueRequest } from '../../../src/tasks.ts';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { checkQueues } from '../../tasks/support/check-redis.ts';
import { dumpOf } from '../../tasks/support/redis-dump.ts';
import { until } from '../../until.ts';
import { describeEachGo } from './support/describe-each-go.ts';
import type { World } from './support/world.ts';

const QUEUE = 'fleet';
const ROUNDS = 10;
const NODE_TASKS = 300;
const GO_TASKS = 50;
const ROUND_MS = 400;

/** A member of the fleet. */
interface Member {
  kill(): Promise<void>;
}

describe('a fleet of both, some of which are killed', () => {
  describeEachGo(
    (world) => {
      it(
        'a fleet of both, some of which are killed runs every task at least once, loses none, and leaves nothing behind',
        { timeout: 120_000 },
        async () => {
          const startMember = [startNode, startGo];
          const fleet = await Promise.all([
            startNode(world()),
            startGo(world()),
            startNode(world()),
            startGo(world()),
          ]);
          const ids: string[] = [];
          for (let round = 0; round < ROUNDS; round++) {
            ids.push(...(await enqueueSome(world(), round)));
            await sleep(ROUND_MS);
            const place = Math.floor(Math.random() * fleet.length);
            await fleet[place]?.kill();
            // Those of the dead, and of others that have done nothing wrong: they are told when it is too late.
            await endLeases(world());
            fleet[place] = await (startMember[place % 2] ?? startNode)(world());
          }
          await drain(world(), ids.length, fleet);

          const { redis, inspector } = world();
          const runs = await redis.hgetall('runs');
          expect(ids.filter((id) => !(Number(runs[id]) >= 1))).toEqual([]);
          expect(Object.keys(runs)).toHaveLength(ids.length);
          const info = await inspector.getQueueInfo(QUEUE);
          expect(info).toMatchObject({ size: info.completed, completed: ROUNDS * (NODE_TASKS / 3) });
          checkQueues(await dumpOf(redis), { hasGo: true });
          expect(await redis.keys(`asynq:{${QUEUE}}:unique:*`)).toEqual([]);
          expect(await redis.keys(`asynq:{${QUEUE}}:t:*`)).toHaveLength(info.completed);
          expect(await world().go.inspect('ListCompletedTasks', QUEUE)).toHaveLength(30); // a page
        },
      );
    },
    ['0.26.0'],
  );
});

function startNode(world: World): Promise<Member> {
  return world.startNodeWorker(QUEUE, { leaseMs: 1_000, maxRecoveries: 1_000, concurrency: 8 });
}

async function startGo(world: World): Promise<Member> {
  const driver = world.startGo();
  world.atEndOfTest(() => driver.kill());
  const serving = { queues: { [QUEUE]: 1 }, concurrency: 8, retryDelayMs: 100, runsAreNotShown: true };
  await driver.serve(serving);
  return driver;
}

/** From both: a third is kept when it is done, a third has a lock, and a third fails at first. */
async function enqueueSome(world: World, round: number): Promise<string[]> {
  const requests = Array.from({ length: NODE_TASKS }, (_, n): EnqueueRequest => {
    const options = [{ retentionMs: 3_600_000 }, { uniqueTtlMs: 3_600_000 }, {}][n % 3] ?? {};
    const payload = n % 3 === 2 ? 'fails once' : `${round}.${n}`;
    return { task: new Task('count', Buffer.from(payload), { queue: QUEUE }), options };
  });
  const [ours, theirs] = await Promise.all([
    world.client.enqueueMany(requests),
    Promise.all(
      Array.from({ length: GO_TASKS }, (_, n) =>
        world.go.enqueue({
          type: 'count',
          payload: `go ${round}.${n}`,
          queue: QUEUE,
          uniqueTtlMs: 3_600_000,
        }),
      ),
    ),
  ]);
  const ids = ours.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value.id;
  });
  return [...ids, ...theirs.map(({ ID }) => ID)];
}

/** Time alone is faked: all leases have ended long ago. */
async function endLeases(world: World): Promise<void> {
  const leased = await world.redis.zrange(new QueueKeys(QUEUE).lease, '0', '-1');
  for (const id of leased) await world.endLease(QUEUE, id);
}

/** Until nothing is left to do. What the dead have left is recovered when a server starts. */
async function drain(world: World, count: number, fleet: Member[]): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    const { pending, active, retry, scheduled } = await world.inspector.getQueueInfo(QUEUE);
    return pending + active + retry + scheduled === 0 && (await world.redis.hlen('runs')) >= count;
  };
  for (let attempt = 0; attempt < 5; attempt++) {
    try {
      await until('all is done', isDone, 10_000);
      break;
    } catch {
      await endLeases(world);
      fleet.push(await startNode(world), await startGo(world));
    }
  }
  await until('all is done', isDone, 1_000);
}
