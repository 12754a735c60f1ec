import { DelayedOperation, type CompletionReason } from 'escapement';
import type { FetchAnswer } from '../wire.ts';
import type { Partition } from './partition.ts';
import type { Reply } from './reply.ts';

/** One answer carries at most so much of a partition: whoever is far behind asks more often. */
const MAX_BYTES_PER_PARTITION = 64 * 1_024;

/** Where a reader is in a partition. */
export interface FetchPosition {
  readonly partition: Partition;
  readonly offset: number;
}

/** How far a reader may read: consumers what is safe, followers everything. */
export type ReadLimit = 'high watermark' | 'log end';

/**
 * A long poll, of a consumer or of a follower: waits for `minBytes`, and answers what is there when its time is over.
 *
 * As in Kafka it keeps no records while it waits. What it found when its condition held is not what it answers: it
 * reads the log again in `onComplete`, and so the answer is the same however it got there.
 */
export class DelayedFetch extends DelayedOperation {
  readonly reply: Reply;
  readonly #positions: readonly FetchPosition[];
  readonly #limit: ReadLimit;
  readonly #minBytes: number;

  constructor(options: {
    positions: readonly FetchPosition[];
    limit: ReadLimit;
    minBytes: number;
    maxWaitMs: number;
    reply: Reply;
  }) {
    super(options.maxWaitMs);
    this.#positions = options.positions;
    this.#limit = options.limit;
    this.#minBytes = options.minBytes;
    this.reply = options.reply;
  }

  override tryComplete(): boolean {
    let bytes = 0;
    for (const { partition, offset } of this.#positions) {
      bytes += partition.log.bytesBetween(offset, this.#endOf(partition));
    }
    return bytes >= this.#minBytes && this.forceComplete();
  }

  override onComplete(reason: CompletionReason): void {
    if (reason === 'tried' || reason === 'expired') this.reply(200, this.#read());
    else if (reason === 'closed') this.reply(503, { error: 'the broker shuts down' });
    // 'forced': the client hung up.
  }

  override onExpiration(): void {
    // A long poll that ends without records is nothing special.
  }

  #read(): FetchAnswer {
    return {
      partitions: this.#positions.map(({ partition, offset }) => ({
        partition: partition.index,
        firstOffset: offset,
        values: partition.log.read(offset, this.#endOf(partition), MAX_BYTES_PER_PARTITION),
        highWatermark: partition.highWatermark,
      })),
    };
  }

  #endOf(partition: Partition): number {
    return this.#limit === 'log end' ? partition.log.endOffset : partition.highWatermark;
  }
}
