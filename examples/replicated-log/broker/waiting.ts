import { DelayedOperationPurgatory, SystemTimer, type DelayedOperation } from 'escapement';
import type { LeaderStatus, PurgatoryStatus } from '../wire.ts';
import type { DelayedFetch } from './delayed-fetch.ts';
import type { DelayedHeartbeat } from './delayed-heartbeat.ts';
import type { DelayedProduce } from './delayed-produce.ts';
import type { Partition } from './partition.ts';
import { PurgatoryCounts } from './purgatory-counts.ts';
import type { Reply } from './reply.ts';
import { partitionKey, type TopicPartition } from './topic-partition.ts';

/** An operation of ours that answers a request. */
type Answering = DelayedOperation & { readonly reply: Reply };

/**
 * Everything that waits in the leader, and who is told of what:
 *
 *      produce ──────► log end ─────────┐             ┌──► produces   wait for the high watermark
 *      replicate ────► follower offset ─┼─► change ───┼──► fetches    wait for bytes below it, or below the log end
 *      session ends ─► in-sync set ─────┘             └──► inSync     wait for the set to have a size
 *      heartbeat ─────────────────────────────────────────► sessions  wait for the next heartbeat
 *
 * Four purgatories on one timer. They are apart because a check walks all that is watched under its key.
 */
export class Waiting {
  readonly produces: DelayedOperationPurgatory<TopicPartition, DelayedProduce>;
  readonly fetches: DelayedOperationPurgatory<TopicPartition, DelayedFetch>;
  /** Only for `wait`. */
  readonly inSync: DelayedOperationPurgatory<TopicPartition>;
  readonly sessions: DelayedOperationPurgatory<string, DelayedHeartbeat>;
  /** What operations threw. */
  readonly errors: string[] = [];
  readonly #timer = new SystemTimer({ name: 'leader' });
  readonly #counts = new PurgatoryCounts();

  constructor() {
    const common = { timer: this.#timer, metrics: this.#counts };
    const answering = { ...common, keyOf: partitionKey, onError: this.#refuse };
    const silent = { ...common, onError: this.#note };
    this.produces = new DelayedOperationPurgatory<TopicPartition, DelayedProduce>('produce', answering);
    this.fetches = new DelayedOperationPurgatory<TopicPartition, DelayedFetch>('fetch', answering);
    this.inSync = new DelayedOperationPurgatory('in-sync', { ...silent, keyOf: partitionKey });
    this.sessions = new DelayedOperationPurgatory('sessions', silent);
  }

  /**
   * Changes a partition, and tells those who may wait for what has moved. A trigger too many costs a walk through
   * all that is watched under the key; one that is missing, a timeout: `missedTriggers` counts those.
   */
  change(partition: Partition, change: () => void): void {
    const { log, highWatermark, inSync } = partition;
    const { endOffset } = log;
    change();
    const isWatermarkMoved = partition.highWatermark > highWatermark;
    if (isWatermarkMoved) this.produces.checkAndComplete(partition);
    if (isWatermarkMoved || log.endOffset > endOffset) this.fetches.checkAndComplete(partition);
    if (partition.inSync.length !== inSync.length) this.inSync.checkAndComplete(partition);
  }

  status(): LeaderStatus['purgatories'] {
    return {
      produce: this.#statusOf(this.produces),
      fetch: this.#statusOf(this.fetches),
      sessions: this.#statusOf(this.sessions),
      inSync: this.#statusOf(this.inSync),
    };
  }

  /** Answers everybody who waits. */
  close(): void {
    for (const purgatory of [this.produces, this.fetches, this.inSync, this.sessions]) purgatory.close();
    // It was passed in, so the purgatories leave it open.
    this.#timer.close();
  }

  readonly #note = (error: unknown): void => {
    this.errors.push(String(error));
  };

  /** An operation whose code threw would leave its client without an answer until the timeout. */
  readonly #refuse = (error: unknown, operation: Answering): void => {
    this.#note(error);
    operation.reply(500, { error: String(error) });
    operation.forceComplete();
  };

  #statusOf({ name, watched, numDelayed, watchedKeys }: Gauges): PurgatoryStatus {
    const completed = this.#counts.completed(name);
    return { watched, numDelayed, watchedKeys, completed, missedTriggers: this.#counts.missedTriggers(name) };
  }
}

type Gauges = Pick<DelayedOperationPurgatory<unknown>, 'name' | 'watched' | 'numDelayed' | 'watchedKeys'>;
