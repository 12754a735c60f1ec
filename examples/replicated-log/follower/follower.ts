import { SystemTimer } from 'escapement';
import { PartitionLog } from '../broker/partition-log.ts';
import { bodyOf, JsonClient } from '../http/json-client.ts';
import type { FetchAnswer } from '../wire.ts';

/** What a follower is made of. */
export interface FollowerOptions {
  readonly member: string;
  readonly leaderPort: number;
  readonly partitions: number;
  readonly heartbeatMs: number;
  /** How long the leader may keep a long poll that has nothing to answer. */
  readonly maxWaitMs: number;
}

/** After an error, before the leader is asked again. */
const RETRY_MS = 100;

/** Copies the leader's log by long polls, and tells it by heartbeats that it is alive. Starts with an empty log. */
export class Follower {
  readonly logs: readonly PartitionLog[];
  readonly #options: FollowerOptions;
  readonly #leader: JsonClient;
  readonly #timer = new SystemTimer({ name: 'follower' });
  readonly #stop = new AbortController();
  readonly #done: Promise<unknown>;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.logs = Array.from({ length: options.partitions }, () => new PartitionLog());
    this.#leader = new JsonClient(options.leaderPort);
    this.#done = this.#run();
  }

  /** Ends the long poll when it is answered, says goodbye to the leader, and leaves nothing open. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    // A leader that is gone has forgotten it anyway.
    await this.#leader.post(`/leave?member=${this.#options.member}`).catch(() => undefined);
    this.#leader.close();
    this.#timer.close();
  }

  /** Whoever has no session is not let into the in-sync set: so a heartbeat comes first. */
  async #run(): Promise<void> {
    while (!this.#isStopped && !(await this.#attempt(this.#heartbeat)));
    await Promise.all([
      this.#loop(this.#heartbeat, this.#options.heartbeatMs),
      this.#loop(this.#replicate, 0),
    ]);
  }

  async #loop(step: () => Promise<void>, pauseMs: number): Promise<void> {
    while (!this.#isStopped) {
      if ((await this.#attempt(step)) && pauseMs > 0) await this.#pause(pauseMs);
    }
  }

  /** @returns whether it went well; if not, it is time to try again. */
  async #attempt(step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch {
      await this.#pause(RETRY_MS);
      return false;
    }
  }

  readonly #heartbeat = async (): Promise<void> => {
    bodyOf(await this.#leader.post(`/heartbeat?member=${this.#options.member}`));
  };

  readonly #replicate = async (): Promise<void> => {
    const { member, maxWaitMs } = this.#options;
    const offsets = this.logs.map(({ endOffset }) => endOffset).join(',');
    const path = `/replicate?member=${member}&offsets=${offsets}&maxWaitMs=${maxWaitMs}`;
    const { partitions } = bodyOf(await this.#leader.get(path)) as FetchAnswer;
    for (const { partition, values } of partitions) this.logs[partition]?.append(values);
  };

  get #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Ends early when the follower is stopped. */
  #pause(delayMs: number): Promise<void> {
    return this.#timer.sleep(delayMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
}
