import type { Cluster, Redis, RedisOptions } from 'ioredis';
import { systemClock } from '../../../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { readOptions, type OptionTable } from '../../../core/options.ts';
import { requireBoolean } from '../../../core/validate.ts';
import type { QueueLocation, RedisInfo } from '../../info.ts';
import { withoutCredentials } from '../../../core/errors.ts';
import { BrokerBase, type Operations } from '../broker-base.ts';
import { BROKER_SETTINGS, type BrokerSettings } from '../broker-settings.ts';
import { MAINTENANCE_JOBS } from '../broker-types.ts';
import { brokerClosed } from '../broker-errors.ts';
import type { LeaseHolder, LeaseHolderOptions } from '../broker.ts';
import { TRANSFER, type Transfer } from '../transfer.ts';
import { ADMINISTRATION } from './administration.ts';
import { routeOf } from './client.ts';
import { CONNECTION_OPTIONS, hasUrl, type RedisConnectionOptions } from './connection-options.ts';
import { RedisConnection } from './connection.ts';
import { DEQUEUING } from './dequeue.ts';
import { ENQUEUING } from './enqueue.ts';
import { GROUPS } from './groups.ts';
import { INSPECTION, queueNames } from './inspection.ts';
import { RENEWING } from './lease-renewer.ts';
import { LeaseThread, leaseThreadFile, threadFailed } from './lease-thread.ts';
import { LIMITS } from './limits.ts';
import { MAINTENANCE } from './maintenance.ts';
import { MEMBERS } from './members.ts';
import { closeListeners, NOTIFICATIONS } from './notifications.ts';
import { RedisAccess } from './redis-access.ts';
import { repair } from './repair.ts';
import { READING } from './read-tasks.ts';
import { SETTLING } from './settle.ts';
import { RedisTransfer } from './transfer.ts';

/** Options of a `RedisBroker`. All are validated by its constructor. */
export type RedisBrokerOptions = RedisConnectionOptions & BrokerSettings & LeaseThreadOptions;

/** Options for the leases of tasks that block the event loop. */
export interface LeaseThreadOptions {
  /**
   * Whether a thread renews the leases of the servers of this process too, with a connection of its own: then a handler may hold
   * the event loop for longer than a lease. It does not renew a lease after the task's deadline and the server's `graceMs`. The
   * thread starts with the first task, and sends no command while no task runs. Only on the system's clock. If it cannot be
   * started, the server's logger is warned.
   *
   * @default true
   */
  readonly leaseThread?: boolean | undefined;
}

const OPTIONS = {
  ...BROKER_SETTINGS,
  ...CONNECTION_OPTIONS,
  leaseThread: [requireBoolean, true],
} satisfies OptionTable<RedisBrokerOptions>;

const OPERATIONS: Operations<RedisAccess> = {
  async ping(redis) {
    await redis.send((client) => client.ping());
  },
  ...ENQUEUING,
  ...DEQUEUING,
  ...SETTLING,
  ...RENEWING,
  ...MAINTENANCE,
  ...GROUPS,
  ...NOTIFICATIONS,
  ...MEMBERS,
  ...INSPECTION,
  ...READING,
  ...ADMINISTRATION,
  ...LIMITS,
  repair,
};

/**
 * A broker on Redis, 6.2 or later, or on Valkey, for a fleet: any number of clients, servers and inspectors in as many processes,
 * written in Node or, with asynq, in Go. It stores exactly the bytes that asynq stores; what it adds is in fields and keys that
 * asynq ignores, whose names begin with `x:`.
 *
 * Times are stored in whole seconds, as in asynq: a due task may come up to a second late, and never early.
 *
 * @example
 * ```ts
 * const broker = new RedisBroker({ url: 'redis://localhost:6379' });
 * const client = new Client({ broker });
 * const server = new Server({ broker });
 * ```
 */
export class RedisBroker extends BrokerBase {
  override readonly maintenance = MAINTENANCE_JOBS;
  readonly #options: RedisBrokerOptions;
  readonly #redis: RedisAccess;
  readonly #threads = new Set<LeaseThread>();
  #closing = Promise.resolve();

  /** Begins to connect; operations wait for the connection. @throws TypeError or RangeError - an option is not valid. */
  constructor(options: RedisBrokerOptions) {
    const settings = readOptions('RedisBroker', options, OPTIONS);
    const redis = new RedisAccess(new RedisConnection(options), settings);
    super('RedisBroker', settings.clock, OPERATIONS, redis);
    this.#options = options;
    this.#redis = redis;
  }

  /** Where Redis is, without user and password: `redis://localhost:6379/0`, or addresses of nodes, separated by commas. */
  get address(): string {
    const options = this.#options;
    return hasUrl(options) ? withoutCredentials(options.url) : addressOf(options.client);
  }

  /** Returns what Redis reports about itself, by name: its command `INFO`; for a cluster, that of one node. */
  async info(): Promise<Readonly<Record<string, string>>> {
    return await this.perform('info', async () =>
      parseInfo(await this.#redis.send((client) => client.info())),
    );
  }

  /**
   * Returns the content of asynqmon's page on Redis, with the nodes of the queues if it is a cluster: for the option `redisInfo` of
   * `tasksHandler`.
   *
   * @example tasksHandler({ broker, redisInfo: () => broker.redisInfo() })
   */
  async redisInfo(): Promise<RedisInfo> {
    return await this.perform('redisInfo', () => describe(this.#redis));
  }

  /** Returns a thread, which starts with the first lease; undefined for a broker with its own clock, which a thread cannot read. */
  override leaseHolder(options: LeaseHolderOptions): LeaseHolder | undefined {
    if (this.isClosed || this.clock !== systemClock || this.#options.leaseThread === false) return undefined;
    try {
      const thread = new LeaseThread({
        ...options,
        file: leaseThreadFile,
        route: () => routeOf(this.#options),
        onClose: () => this.#threads.delete(thread),
      });
      this.#threads.add(thread);
      return thread;
    } catch (error) {
      options.onError(threadFailed(error));
      return undefined;
    }
  }

  /** Closes the broker; pending operations reject. A client that was passed in stays open. Idempotent. */
  override close(): Promise<void> {
    if (this.closeOperations()) this.#closing = this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    closeListeners(this.#redis);
    this.#redis.close();
    await Promise.all([...this.#threads].map((thread) => thread.close()));
    await this.#redis.connection.close();
  }

  /** @internal For `copyTasks`. @throws EscapementError `ERR_BROKER_CLOSED` */
  [TRANSFER](): Transfer {
    if (this.isClosed) throw brokerClosed();
    return new RedisTransfer(this.#redis);
  }

  /** @internal What a console prints: no password. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ clock: undefined, maintenance: undefined },
      [hasUrl(this.#options) ? 'url' : 'address']: this.address,
      state: this.isClosed ? 'closed' : this.#redis.connection.health.state,
    }));
  }
}

/** A range of slots, as `CLUSTER SLOTS` writes it: the primary is the first node. */
type SlotRange = readonly [
  first: number,
  last: number,
  ...nodes: (readonly [host: string | null, port: number])[],
];

async function describe(redis: RedisAccess): Promise<RedisInfo> {
  const { isCluster } = redis;
  const [address, text] = await redis.send(async (client) => [
    addressOf(client),
    await (isCluster ? client.cluster('INFO') : client.info()),
  ]);
  const info = { address, info: parseInfo(text), raw_info: text, cluster: isCluster };
  if (!isCluster) return info;
  const nodes = (await redis.send((client) => client.cluster('NODES'))) as string;
  return { ...info, raw_cluster_nodes: nodes, queue_locations: await locateQueues(redis) };
}

/** Parses the lines of `INFO` and `CLUSTER INFO`. A value may contain colons. */
function parseInfo(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

async function locateQueues(redis: RedisAccess): Promise<readonly QueueLocation[]> {
  const ranges = (await redis.send((client) => client.cluster('SLOTS'))) as unknown as readonly SlotRange[];
  return await Promise.all(
    (await queueNames(redis)).map(async (queue) => {
      const { pending } = redis.keysOf(queue);
      const keyslot = await redis.send((client) => client.cluster('KEYSLOT', pending));
      const range = ranges.find(([first, last]) => first <= keyslot && keyslot <= last);
      const [, , ...nodes] = range ?? [keyslot, keyslot];
      return { queue, keyslot, nodes: nodes.map(([host, port]) => hostAndPort(host ?? '', port)) };
    }),
  );
}

/** Returns the address of a server or of all nodes; with sentinels, that of the primary. */
function addressOf(client: Redis | Cluster): string {
  if (client.isCluster) {
    const nodes = (client as Cluster).nodes('all').map(({ options }) => options);
    return nodes.map(({ host = '', port = 0 }) => hostAndPort(host, port)).join(',');
  }
  const { options, stream } = client as { options: RedisOptions; stream?: Redis['stream'] }; // none before it connects
  const { remoteAddress = '', remotePort = 0 } = stream ?? {};
  if (options.sentinels != null) return hostAndPort(remoteAddress, remotePort);
  return options.path ?? hostAndPort(options.host ?? remoteAddress, options.port ?? remotePort);
}

function hostAndPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
