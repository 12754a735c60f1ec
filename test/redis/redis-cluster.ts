import type { Redis } from 'ioredis';
import { until } from '../until.ts';
import { RedisProcess } from './redis-process.ts';
import { withRedis } from './with-redis.ts';

const NODES = 3;
const SLOTS = 16_384;
/** Time after which a node counts as failed, in milliseconds, and for which nodes that meet, or meet again, accept no commands. */
const NODE_TIMEOUT_MS = 1_000;
/** The same when they have met: no node fails because the machine stops for some seconds. */
const PATIENT_TIMEOUT_MS = 60_000;
const MIGRATE_TIMEOUT_MS = 5_000;
/** Keys of a slot that is moved. */
const MOST_KEYS = 1_000;

/** Three primaries that share the slots, and no replica. */
export class RedisCluster {
  readonly nodes: readonly RedisProcess[];

  private constructor(nodes: readonly RedisProcess[]) {
    this.nodes = nodes;
  }

  static async start(): Promise<RedisCluster> {
    const args = [
      ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
      // Queues of other nodes continue while one node is lost.
      ...['--cluster-require-full-coverage', 'no'],
    ];
    const nodes = await Promise.all(
      Array.from({ length: NODES }, () => RedisProcess.start({ isClusterNode: true, args })),
    );
    const cluster = new RedisCluster(nodes);
    await cluster.#join();
    await until('all nodes know all slots', () => cluster.#isComplete());
    const patient = `CONFIG SET cluster-node-timeout ${PATIENT_TIMEOUT_MS}`;
    await Promise.all(nodes.map((node) => node.ask(patient)));
    return cluster;
  }

  get url(): string {
    return `redis-cluster://${this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  }

  /**
   * Moves the slot of a key to another node, as `redis-cli --cluster reshard` does.
   *
   * @param meanwhile - called when half of the keys have moved.
   */
  async moveSlotOf(key: string, meanwhile: () => Promise<void>): Promise<void> {
    const [first, second] = this.nodes as [RedisProcess, RedisProcess];
    const slot = await withRedis(first.url, (redis) => redis.cluster('KEYSLOT', key));
    const from = this.nodes.find((_, index) => slotsOf(index).includes(slot)) as RedisProcess;
    const to = from === first ? second : first;
    const setSlot = (node: RedisProcess, ...words: string[]): Promise<unknown> =>
      withRedis(node.url, (redis) => redis.call('CLUSTER', 'SETSLOT', slot, ...words));
    const idOf = (node: RedisProcess): Promise<string> =>
      withRedis(node.url, (redis) => redis.call('CLUSTER', 'MYID') as Promise<string>);
    await setSlot(to, 'IMPORTING', await idOf(from));
    await setSlot(from, 'MIGRATING', await idOf(to));
    await withRedis(from.url, async (redis) => {
      const keys = await redis.cluster('GETKEYSINSLOT', slot, MOST_KEYS);
      const half = Math.ceil(keys.length / 2);
      await migrate(redis, to, keys.slice(0, half));
      await meanwhile();
      await migrate(redis, to, keys.slice(half));
    });
    for (const node of [to, from]) await setSlot(node, 'NODE', await idOf(to));
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async #join(): Promise<void> {
    const [first] = this.nodes;
    for (const [index, node] of this.nodes.entries()) {
      await withRedis(node.url, async (redis) => {
        await redis.cluster('SET-CONFIG-EPOCH', index + 1);
        await redis.cluster('ADDSLOTS', ...slotsOf(index));
        if (first !== undefined && node !== first) await redis.cluster('MEET', '127.0.0.1', first.port);
      });
    }
  }

  async #isComplete(): Promise<boolean> {
    const states = await Promise.all(
      this.nodes.map(({ url }) => withRedis(url, (redis) => redis.cluster('INFO'))),
    );
    return states.every(
      (state) => state.includes('cluster_state:ok') && state.includes(`cluster_size:${NODES}`),
    );
  }
}

/** @throws Error - a key exists at that node. */
async function migrate(redis: Redis, to: RedisProcess, keys: readonly string[]): Promise<void> {
  await redis.call('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_TIMEOUT_MS, 'KEYS', ...keys);
}

/** The slots of a node: as many as the others have. */
function slotsOf(index: number): number[] {
  const from = Math.floor((index * SLOTS) / NODES);
  const to = Math.floor(((index + 1) * SLOTS) / NODES);
  return Array.from({ length: to - from }, (_, offset) => from + offset);
}
