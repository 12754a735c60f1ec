import { fromBinary } from '@bufbuild/protobuf';
import { Client } from 'escapement/tasks';
import { afterEach, beforeEach } from 'vitest';
import { QueueKeys } from '../../../../src/tasks/broker/redis/keys.ts';
import { TaskMessageSchema } from '../../../../src/tasks/wire/asynq-messages.gen.ts';
import { redisSetup, type RedisSetup } from './setup.ts';

/** The fixture of the tests of asynq's rules: a broker, a client, and a client of Redis. Redis is checked after each test. */
export interface RuleWorld extends RedisSetup {
  readonly client: Client;
  /** The protobuf message of a task of the default queue. */
  readonly messageOf: (id: string) => Promise<ReturnType<typeof fromBinary<typeof TaskMessageSchema>>>;
}

export const QUEUE = 'default';
export const keys = new QueueKeys(QUEUE);
export const HOUR_MS = 3_600_000;
/** Every byte that there is. */
export const BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
/** A group is taken at once. */
export const AT_ONCE = { graceMs: 0, maxDelayMs: 0, maxSize: 1 };
export const failure = { error: 'it failed', isFailure: true };
export const server = {
  ...{ id: 's', host: 'h', pid: 7, concurrency: 1, queues: { [QUEUE]: 1 }, strictPriority: false },
  ...{ status: 'active' as const, startedAtMs: 1_700_000_000_000.5 },
};
export const worker = {
  ...{
    taskId: 'id',
    taskType: 't',
    payload: BYTES,
    queue: QUEUE,
    startedAtMs: 1_700_000_000_000.5,
    deadlineMs: 0,
  },
};

/** A world of its own for each test of the file. */
export function ruleWorlds(): () => RuleWorld {
  let world: RuleWorld;
  beforeEach(async () => {
    const setup = await redisSetup();
    const messageOf: RuleWorld['messageOf'] = async (id) => {
      const bytes = await setup.redis.hgetBuffer(keys.task(id), 'msg');
      if (bytes === null) throw new Error(`${id} has no msg`);
      return fromBinary(TaskMessageSchema, bytes);
    };
    world = { ...setup, client: new Client({ broker: setup.broker }), messageOf };
  });
  afterEach(async () => {
    try {
      await world.check?.();
    } finally {
      await world.dispose();
    }
  });
  return () => world;
}
