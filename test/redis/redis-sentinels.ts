import { until } from '../until.ts';
import { RedisProcess } from './redis-process.ts';
import { withRedis } from './with-redis.ts';

const MASTER = 'mymaster';

/** When a server counts as lost, and a failover as failed, in milliseconds. */
type Patience = Readonly<Record<'down-after-milliseconds' | 'failover-timeout', number>>;

/** A machine that has much to do, or stops for some seconds, replaces no primary that is there, and ends no failover. */
const PATIENT: Patience = { 'down-after-milliseconds': 60_000, 'failover-timeout': 60_000 };
/** While a test waits for the loss of a primary. A failover for which no sentinel has got enough votes is repeated soon. */
const HASTY: Patience = { 'down-after-milliseconds': 500, 'failover-timeout': 3_000 };

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
    // A sentinel refuses while its last news of the replica are some seconds old.
    await until('a sentinel begins', async () => {
      await this.#ask(this.sentinels[0], (redis) => redis.call('SENTINEL', 'failover', MASTER));
      return true;
    });
    await this.#untilPrimaryIsNot(before);
  }

  /** Waits until the sentinels have replaced a primary that does not answer. */
  async untilReplaced(lost: RedisProcess): Promise<void> {
    await this.#become(HASTY);
    await this.#untilPrimaryIsNot(lost);
    await this.#become(PATIENT);
  }

  async #untilPrimaryIsNot(server: RedisProcess): Promise<void> {
    await until('the primary is another one', async () => (await this.primary()) !== server);
  }

  async #become(patience: Patience): Promise<void> {
    const words = Object.entries(patience).flat();
    await Promise.all(
      this.sentinels.map((each) =>
        this.#ask(each, (redis) => redis.call('SENTINEL', 'SET', MASTER, ...words)),
      ),
    );
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
    ...Object.entries(PATIENT).map(([name, ms]) => `sentinel ${name} ${MASTER} ${ms}`),
  ];
  if (passwords !== undefined) {
    lines.push(`sentinel auth-pass ${MASTER} ${passwords.server}`);
    lines.push(`requirepass ${passwords.sentinel}`);
  }
  return `${lines.join('\n')}\n`;
}
