import { Client, Task } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { RedisBroker } from 'escapement/tasks/redis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RedisCluster } from '../../../redis/redis-cluster.ts';
import { RedisProcess } from '../../../redis/redis-process.ts';
import { RedisSentinels } from '../../../redis/redis-sentinels.ts';
import { serve } from '../../http/serve.ts';

describe('redisInfo', () => {
  function open(url: string, password?: string): RedisBroker {
    const broker = new RedisBroker({ url, ...(password === undefined ? {} : { password }) });
    onTestFinished(() => broker.close());
    return broker;
  }

  test('redisInfo has the shape of asynqmon, and no password', async () => {
    const redis = await RedisProcess.start({ args: ['--requirepass', 'secret'] });
    onTestFinished(() => redis.stop());
    const broker = open(`redis://:secret@127.0.0.1:${redis.port}/3`);
    const { info, raw_info: rawInfo, ...rest } = await broker.redisInfo();
    expect(rest).toEqual({ address: `127.0.0.1:${redis.port}`, cluster: false });
    expect(rawInfo).toContain(`tcp_port:${redis.port}\r\n`);
    expect(info).toMatchObject({ tcp_port: String(redis.port), redis_mode: 'standalone' });
    expect(JSON.stringify([info, rawInfo])).not.toContain('secret');

    const send = await serve(tasksHandler({ broker, redisInfo: () => broker.redisInfo() }));
    const { status, json } = await send('/api/redis_info');
    expect(status).toBe(200);
    expect(json).toMatchObject({ ...rest, raw_cluster_nodes: '', queue_locations: null });
    expect(json).toMatchObject({ info: { redis_version: info['redis_version'] } });
  });

  test('redisInfo of a cluster has the nodes of its queues', async () => {
    const redis = await RedisCluster.start();
    onTestFinished(() => redis.stop());
    const broker = open(redis.url);
    const client = new Client({ broker });
    for (const queue of ['q0', 'q1', 'q2']) await client.enqueue(new Task('a', 1, { queue }));
    const info = await broker.redisInfo();
    const addresses = redis.nodes.map(({ port }) => `127.0.0.1:${port}`);
    expect(info.address.split(',').sort()).toEqual([...addresses].sort());
    expect(info.cluster).toBe(true);
    expect(info.info).toMatchObject({ cluster_state: 'ok', cluster_size: '3' });
    expect(info.raw_info).toContain('cluster_state:ok\r\n');
    for (const address of addresses) expect(info.raw_cluster_nodes).toContain(address);
    const locations = [...(info.queue_locations ?? [])].sort((a, b) => a.queue.localeCompare(b.queue));
    expect(locations).toEqual([
      { queue: 'q0', keyslot: await slotOf(redis, 'q0'), nodes: [addresses[0]] },
      { queue: 'q1', keyslot: await slotOf(redis, 'q1'), nodes: [addresses[1]] },
      { queue: 'q2', keyslot: await slotOf(redis, 'q2'), nodes: [addresses[2]] },
    ]);
  });

  test('the address in redisInfo is that of the primary if there are sentinels', async () => {
    const passwords = { server: 'of-servers', sentinel: 'of-sentinels' };
    const redis = await RedisSentinels.start(passwords);
    onTestFinished(() => redis.stop());
    const { address } = await open(redis.url, passwords.server).redisInfo();
    expect(address).toBe(`127.0.0.1:${(await redis.primary()).port}`);
  });

  async function slotOf(redis: RedisCluster, queue: string): Promise<number> {
    const [reply = ''] = (await redis.nodes[0]?.ask(`CLUSTER KEYSLOT {${queue}}`)) ?? [];
    return Number(reply.replace(':', ''));
  }
});
