import type { DelayedOperation } from 'escapement';
import type { LeaderStatus, ProduceRequest } from '../wire.ts';
import { DelayedFetch } from './delayed-fetch.ts';
import { DelayedProduce, produceAnswer, type Appended } from './delayed-produce.ts';
import { Partition } from './partition.ts';
import type { Reply } from './reply.ts';
import { Sessions } from './sessions.ts';
import { Waiting } from './waiting.ts';

const TOPIC = 'events';

/** What a leader is made of. */
export interface LeaderOptions {
  readonly partitions: number;
  /** Replicas, the leader included, that `acks=all` needs. */
  readonly minInSync: number;
  /** A follower that is not heard of for so long is dropped. */
  readonly sessionTimeoutMs: number;
}

/**
 * The leader of all partitions, without its HTTP. What cannot be answered at once becomes an operation, which is
 * returned so that the server can give it up when its client hangs up.
 */
export class Leader {
  readonly partitions: readonly Partition[];
  readonly waiting = new Waiting();
  readonly sessions: Sessions;
  readonly #minInSync: number;

  constructor({ partitions, minInSync, sessionTimeoutMs }: LeaderOptions) {
    this.partitions = Array.from(
      { length: partitions },
      (_, index) => new Partition({ topic: TOPIC, index }),
    );
    this.#minInSync = minInSync;
    this.sessions = new Sessions(this.waiting.sessions, sessionTimeoutMs, this.#dropReplica);
  }

  /** Appends, and answers: with `acks=1` at once, else when the in-sync replicas have the records. */
  produce(
    request: ProduceRequest,
    acks: 'all' | '1',
    timeoutMs: number,
    reply: Reply,
  ): DelayedOperation | undefined {
    const batches = request.partitions.map(({ partition, values }) => ({
      partition: this.#at(partition),
      values,
    }));
    const needed = acks === 'all' ? this.#minInSync : 1;
    const short = batches.find(({ partition }) => partition.inSync.length < needed)?.partition;
    if (short !== undefined) {
      const error = `partition ${short.index} has only ${short.inSync.length} in-sync replicas of ${needed}`;
      reply(503, { error });
      return undefined;
    }
    const appended = batches.map(({ partition, values }) => this.#append(partition, values));
    if (acks === '1') {
      reply(200, produceAnswer(appended));
      return undefined;
    }
    const operation = new DelayedProduce(appended, this.#minInSync, timeoutMs, reply);
    this.waiting.produces.tryCompleteElseWatch(
      operation,
      appended.map(({ partition }) => partition),
    );
    return operation;
  }

  /** A consumer's long poll. */
  fetch(
    position: { partition: number; offset: number },
    minBytes: number,
    maxWaitMs: number,
    reply: Reply,
  ): DelayedOperation {
    const partition = this.#at(position.partition);
    const positions = [{ partition, offset: position.offset }];
    const operation = new DelayedFetch({ positions, limit: 'high watermark', minBytes, maxWaitMs, reply });
    this.waiting.fetches.tryCompleteElseWatch(operation, [partition]);
    return operation;
  }

  /** A follower's long poll, of all partitions at once. Its offsets say how far it is. */
  replicate(member: string, offsets: readonly number[], maxWaitMs: number, reply: Reply): DelayedOperation {
    const positions = offsets.map((offset, index) => ({ partition: this.#at(index), offset }));
    for (const { partition, offset } of positions) {
      this.waiting.change(partition, () => {
        partition.followerIsAt(member, offset, this.sessions.has(member));
      });
    }
    const operation = new DelayedFetch({ positions, limit: 'log end', minBytes: 1, maxWaitMs, reply });
    this.waiting.fetches.tryCompleteElseWatch(
      operation,
      positions.map(({ partition }) => partition),
    );
    return operation;
  }

  /** Resolves when every partition has exactly so many in-sync replicas. */
  inSyncIs(size: number, timeoutMs: number, signal: AbortSignal): Promise<number> {
    const find = (): number | undefined =>
      this.partitions.every(({ inSync }) => inSync.length === size) ? size : undefined;
    return this.waiting.inSync.wait(this.partitions, find, { timeoutMs, signal });
  }

  status(): LeaderStatus {
    return {
      members: this.sessions.members,
      partitions: this.partitions.map(({ index, log, highWatermark, inSync, expiredProduces }) => {
        return { partition: index, logEnd: log.endOffset, highWatermark, inSync, expiredProduces };
      }),
      purgatories: this.waiting.status(),
      errors: this.waiting.errors,
    };
  }

  /** Answers everybody who waits. */
  close(): void {
    this.waiting.close();
  }

  #append(partition: Partition, values: readonly string[]): Appended {
    const firstOffset = partition.log.endOffset;
    this.waiting.change(partition, () => {
      partition.append(values);
    });
    return { partition, firstOffset, requiredOffset: firstOffset + values.length };
  }

  #at(index: number): Partition {
    const partition = this.partitions[index];
    if (partition === undefined) throw new RangeError(`there is no partition ${index}`);
    return partition;
  }

  readonly #dropReplica = (member: string): void => {
    for (const partition of this.partitions) {
      this.waiting.change(partition, () => {
        partition.drop(member);
      });
    }
  };
}
