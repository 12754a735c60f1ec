import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOthers, countSent } from '../../../bench/redis/bench-redis.ts';
import { payloadOf } from '../../../bench/redis/contestant.ts';
import { RedisProcess } from '../../redis/redis-process.ts';

let server: RedisProcess;
let watching: Redis;
let working: Redis;

beforeAll(async () => {
  server = await RedisProcess.start();
  watching = new Redis(server.url);
  working = new Redis(server.url);
  await Promise.all([watching.ping(), working.ping()]);
});

afterAll(async () => {
  watching.disconnect();
  working.disconnect();
  await server.stop();
});

/** Two commands that are sent, and five that a script calls. */
async function work(): Promise<void> {
  await working.set('key', 'value');
  await working.eval("for i = 1, 5 do redis.call('INCR', 'count') end", 0);
}

test('executed commands include those that scripts call, and not those that read the counters', async () => {
  expect(await countOthers(watching, () => Promise.resolve())).toMatchObject({ commands: 0 });
  expect(await countOthers(watching, work)).toMatchObject({ commands: 7 });
});

test('sent commands do not include those that scripts call', async () => {
  expect(await countSent(watching, work)).toBe(2);
});

test('a payload is 64 bytes of JSON', () => {
  expect(JSON.stringify(payloadOf(0))).toHaveLength(64);
  expect(JSON.stringify(payloadOf(1_234_567))).toHaveLength(64);
});
