import { LEADER } from '../broker/partition.ts';
import type { LeaderOptions } from '../broker/leader.ts';
import type { FollowerOptions } from '../follower/follower.ts';
import { bodyOf, JsonClient } from '../http/json-client.ts';
import type { FollowerLog, LeaderStatus } from '../wire.ts';
import { BrokerProcess } from './broker-process.ts';

export const FOLLOWERS = ['follower-1', 'follower-2'] as const;
export type FollowerName = (typeof FOLLOWERS)[number];

/** Of the follower's own making: how often it is heard of, and how long its polls last. */
const FOLLOWER_TIMES = { heartbeatMs: 150, maxWaitMs: 400 };

/** The three processes, and who came in the place of whom. */
export class Cluster {
  /** Every process that was ever started. */
  readonly processes: BrokerProcess[] = [];
  readonly #options: LeaderOptions;
  readonly #followers = new Map<FollowerName, BrokerProcess>();
  #leader: BrokerProcess | undefined;
  #client: JsonClient | undefined;

  constructor(options: LeaderOptions) {
    this.#options = options;
  }

  /** Replicas, the leader included, that `acks=all` needs. */
  get minInSync(): number {
    return this.#options.minInSync;
  }

  get leaderPort(): Promise<number> {
    return this.#started.port;
  }

  /** Resolves to how the leader ended, when it has. */
  get leaderEnd(): Promise<string> {
    return this.#started.ended.then(({ code, signal }) => signal ?? `exit code ${String(code)}`);
  }

  get #started(): BrokerProcess {
    if (this.#leader === undefined) throw new Error('the leader was not started');
    return this.#leader;
  }

  /** A client of the leader, of its own connections. */
  get client(): JsonClient {
    if (this.#client === undefined) throw new Error('the leader was not started');
    return this.#client;
  }

  /** Starts the leader, then the followers. Stop it, also if this fails. */
  async start(): Promise<void> {
    this.#leader = this.#run(LEADER, './leader-process.ts', this.#options);
    this.#client = new JsonClient(await this.#leader.port);
    await Promise.all(FOLLOWERS.map((member) => this.startFollower(member)));
  }

  async startFollower(member: FollowerName): Promise<BrokerProcess> {
    const leaderPort = await this.leaderPort;
    const { partitions } = this.#options;
    const options: FollowerOptions = { member, leaderPort, partitions, ...FOLLOWER_TIMES };
    const follower = this.#run(member, './follower-process.ts', options);
    this.#followers.set(member, follower);
    await follower.port;
    return follower;
  }

  follower(member: FollowerName): BrokerProcess {
    const follower = this.#followers.get(member);
    if (follower === undefined) throw new Error(`${member} was not started`);
    return follower;
  }

  /** Resolves when every partition has exactly so many in-sync replicas. */
  async inSyncIs(size: number, signal?: AbortSignal): Promise<void> {
    bodyOf(await this.client.get(`/in-sync?size=${size}&timeoutMs=20000`, signal));
  }

  async status(signal?: AbortSignal): Promise<LeaderStatus> {
    return bodyOf(await this.client.get('/status', signal)) as LeaderStatus;
  }

  /** What a follower has of each partition. */
  async copies(member: FollowerName): Promise<FollowerLog[]> {
    const client = new JsonClient(await this.follower(member).port);
    const copy = async (partition: number): Promise<FollowerLog> =>
      bodyOf(await client.get(`/log?partition=${partition}`)) as FollowerLog;
    try {
      return await Promise.all(Array.from({ length: this.#options.partitions }, (_, index) => copy(index)));
    } finally {
      client.close();
    }
  }

  /** Stops the followers, who say goodbye to the leader. */
  async stopFollowers(): Promise<void> {
    await Promise.all([...this.#followers.values()].map((follower) => follower.stop()));
  }

  /** Stops whatever runs. */
  async stop(): Promise<void> {
    await this.stopFollowers();
    this.#client?.close();
    await this.#leader?.stop();
  }

  #run(name: string, file: string, options: object): BrokerProcess {
    const started = new BrokerProcess(name, file, options);
    this.processes.push(started);
    return started;
  }
}
