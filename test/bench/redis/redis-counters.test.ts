import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOthers, countSent, parseInfo, readCpuNs } from '../../../bench/redis/bench-redis.ts';
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

test('the numbers of INFO are parsed and its other lines are ignored', () => {
  const fields = parseInfo('# Stats\r\ntotal:12\r\nname:redis\r\ncpu:1.5\r\n');
  expect([...fields]).toEqual([
    ['total', 12],
    ['cpu', 1.5],
  ]);
});

test('executed commands include those that scripts call, and not those that read the counters', async () => {
  expect(await countOthers(watching, () => Promise.resolve())).toMatchObject({ commands: 0 });
  expect(await countOthers(watching, work)).toMatchObject({ commands: 7 });
});

test('sent commands do not include those that scripts call', async () => {
  expect(await countSent(watching, work)).toBe(2);
});

test('the CPU time of Redis grows with its work', async () => {
  const before = await readCpuNs(watching);
  await working.eval('for i = 1, 2000000 do local x = i end', 0);
  expect((await readCpuNs(watching)) - before).toBeGreaterThan(0);
});
