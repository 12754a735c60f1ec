import { DelayedOperation, type CompletionReason } from 'escapement';
import type { Partition } from './partition.ts';
import type { Reply } from './reply.ts';
import type { MissingReplicas, ProduceAnswer } from '../wire.ts';

/** Records of a produce request that were appended to one partition. */
export interface Appended {
  readonly partition: Partition;
  readonly firstOffset: number;
  /** The high watermark must reach it. */
  readonly requiredOffset: number;
}

/**
 * A produce with `acks=all` that waits for the in-sync replicas, under the key of every partition it wrote to.
 *
 * The reason of its completion is its answer: nothing must be prepared for the worst beforehand.
 */
export class DelayedProduce extends DelayedOperation {
  readonly reply: Reply;
  readonly #appended: readonly Appended[];
  readonly #minInSync: number;

  constructor(appended: readonly Appended[], minInSync: number, timeoutMs: number, reply: Reply) {
    super(timeoutMs);
    this.#appended = appended;
    this.#minInSync = minInSync;
    this.reply = reply;
  }

  override tryComplete(): boolean {
    return this.#missing().length === 0 && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    if (reason === 'tried') this.#acknowledge();
    else if (reason === 'expired')
      this.reply(504, {
        error: `not on every in-sync replica within ${this.delayMs} ms`,
        missing: this.#missing().map(missingReplicas),
      });
    else if (reason === 'closed') this.reply(503, { error: 'the broker shuts down' });
    // 'forced': the client hung up, and nobody is there to be told.
  }

  override onExpiration(): void {
    for (const { partition } of this.#missing()) partition.expiredProduces++;
  }

  /** The watermark also moves because replicas were dropped. Then there may be too few left. */
  #acknowledge(): void {
    const short = this.#appended.find(({ partition }) => partition.inSync.length < this.#minInSync);
    if (short === undefined) this.reply(200, produceAnswer(this.#appended));
    else
      this.reply(503, {
        error: `appended, but partition ${short.partition.index} has only ${short.partition.inSync.length} in-sync replicas of ${this.#minInSync}`,
      });
  }

  #missing(): Appended[] {
    return this.#appended.filter(({ partition, requiredOffset }) => partition.highWatermark < requiredOffset);
  }
}

export function produceAnswer(appended: readonly Appended[]): ProduceAnswer {
  return {
    partitions: appended.map(({ partition, firstOffset }) => ({
      partition: partition.index,
      firstOffset,
      inSync: partition.inSync,
    })),
  };
}

function missingReplicas({ partition, requiredOffset }: Appended): MissingReplicas {
  return {
    partition: partition.index,
    requiredOffset,
    highWatermark: partition.highWatermark,
    behind: partition.behind(requiredOffset),
  };
}
