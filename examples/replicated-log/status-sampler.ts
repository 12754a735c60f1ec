import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from './processes/cluster.ts';
import type { LeaderStatus } from './wire.ts';

const INTERVAL_MS = 500;

/** Looks at the leader again and again. */
export class StatusSampler {
  /** The most watch entries that were seen. */
  readonly mostWatched = { produce: 0, fetch: 0 };
  readonly #cluster: Cluster;
  readonly #onStatus: (status: LeaderStatus) => void;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(cluster: Cluster, onStatus: (status: LeaderStatus) => void) {
    this.#cluster = cluster;
    this.#onStatus = onStatus;
    this.#done = this.#run(this.#stop.signal).catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(INTERVAL_MS, undefined, { signal });
      const status = await this.#cluster.status(signal);
      const { produce, fetch } = status.purgatories;
      this.mostWatched.produce = Math.max(this.mostWatched.produce, produce.watched);
      this.mostWatched.fetch = Math.max(this.mostWatched.fetch, fetch.watched);
      this.#onStatus(status);
    }
  }
}
