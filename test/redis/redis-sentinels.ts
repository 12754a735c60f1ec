import { until } from '../until.ts';
import { RedisProcess } from './redis-process.ts';
import { withRedis } from './with-redis.ts';

const MASTER = 'mymaster';
/** Short, because tests wait for it, and long for a machine that has much to do. */
const DOWN_AFTER_MS = 500;
const FAILOVER_TIMEOUT_MS = 3_000;

/** Passwords of both kinds. */
export interface SentinelPasswords {
  readonly server: string;
  readonly sentinel: string;
}

/** A primary, a replica, and three sentinels that watch them. */
export class RedisSentinels {
  readonly sentinels: readonly RedisProcess[];
  readonly servers: readonly RedisProcess[];
  readonly #passwords: SentinelPasswords | undefined;

  private constructor(
    servers: readonly RedisProcess[],
    sentinels: readonly RedisProcess[],
    passwords: SentinelPasswords | undefined,
  ) {
    this.servers = servers;
    this.sentinels = sentinels;
    this.#passwords = passwords;
  }

  /** @param more - arguments of both servers. */
  static async start(passwords?: SentinelPasswords, more: readonly string[] = []): Promise<RedisSentinels> {
    const secrets =
      passwords === undefined ? [] : ['--requirepass', passwords.server, '--masterauth', passwords.server];
    const args = [...secrets, '--repl-diskless-sync-delay', '0', ...more];
    const primary = await RedisProcess.start({ args });
    const replica = await RedisProcess.start({ args: [...args, '--replicaof', `127.0.0.1 ${primary.port}`] });
    const config = sentinelConfig(primary.port, passwords);
    const sentinels = await Promise.all(
      Array.from({ length: 3 }, () => RedisProcess.start({ isSentinel: true, config })),
    );
    const all = new RedisSentinels([primary, replica], sentinels, passwords);
    await until('sentinels know one another', () => all.#isComplete());
    return all;
  }

  get url(): string {
    const hosts = this.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const password = this.#passwords === undefined ? '' : `:${this.#passwords.sentinel}@`;
    return `redis-sentinel://${password}${hosts}?master=${MASTER}`;
  }

  /** The server that the sentinels report as primary. */
  async primary(): Promise<RedisProcess> {
    const [first] = this.sentinels;
    const address = await this.#ask(first, (redis) =>
      redis.call('SENTINEL', 'get-master-addr-by-name', MASTER),
    );
    const port = Number((address as string[])[1]);
    const server = this.servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`no server has port ${port}`);
    return server;
  }

  /** Makes the replica the primary, in order. */
  async failover(): Promise<void> {
    const before = await this.primary();
    await this.#ask(this.sentinels[0], (redis) => redis.call('SENTINEL', 'failover', MASTER));
    await this.untilPrimaryIsNot(before);
  }

  async untilPrimaryIsNot(server: RedisProcess): Promise<void> {
    await until('the primary is another one', async () => (await this.primary()) !== server);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((each) => each.stop()));
  }

  async #isComplete(): Promise<boolean> {
    const states = await Promise.all(
      this.sentinels.map((each) => this.#ask(each, (redis) => redis.call('SENTINEL', 'master', MASTER))),
    );
    return states.every((state) => {
      const words = state as string[];
      const valueOf = (name: string): string | undefined => words[words.indexOf(name) + 1];
      return (
        valueOf('num-slaves') === '1' &&
        valueOf('num-other-sentinels') === '2' &&
        valueOf('flags') === 'master'
      );
    });
  }

  #ask<T>(sentinel: RedisProcess | undefined, question: Parameters<typeof withRedis<T>>[1]): Promise<T> {
    const password = this.#passwords === undefined ? '' : `:${this.#passwords.sentinel}@`;
    return withRedis(`redis://${password}127.0.0.1:${sentinel?.port ?? 0}`, question);
  }
}

function sentinelConfig(port: number, passwords: SentinelPasswords | undefined): string {
  const lines = [
    `sentinel monitor ${MASTER} 127.0.0.1 ${port} 2`,
    `sentinel down-after-milliseconds ${MASTER} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER} ${FAILOVER_TIMEOUT_MS}`,
  ];
  if (passwords !== undefined) {
    lines.push(`sentinel auth-pass ${MASTER} ${passwords.server}`);
    lines.push(`requirepass ${passwords.sentinel}`);
  }
  return `${lines.join('\n')}\n`;
}
