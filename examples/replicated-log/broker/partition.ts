import { PartitionLog } from './partition-log.ts';
import type { TopicPartition } from './topic-partition.ts';

/** The leader counts among its own replicas. */
export const LEADER = 'leader';

/**
 * A partition as its leader sees it: the log, how far each follower is, and from that the high watermark.
 *
 *      offset     0 1 2 3 4 5 6 7 8 9
 *      leader     ■ ■ ■ ■ ■ ■ ■ ■ ■           log end 9
 *      follower-1 ■ ■ ■ ■ ■ ■ ·               asked from 6: has everything below
 *      follower-2 ■ ■ ■ ■ ■ ■ ■ ■ ·           asked from 8
 *                             ▲
 *                             high watermark 6: the least of the in-sync replicas. Readable: 0 … 5.
 *
 * A follower joins the in-sync set when it has all that is below the high watermark, so the watermark never moves
 * back; it leaves the set when its session ends or its log turns out to be lost.
 */
export class Partition implements TopicPartition {
  readonly topic: string;
  readonly index: number;
  readonly log = new PartitionLog();
  /** Produces that expired while this partition kept them waiting. */
  expiredProduces = 0;
  readonly #inSync = new Set<string>([LEADER]);
  readonly #fetchOffsets = new Map<string, number>();
  #highWatermark = 0;

  constructor({ topic, index }: TopicPartition) {
    this.topic = topic;
    this.index = index;
  }

  /** Records below it are on every in-sync replica. */
  get highWatermark(): number {
    return this.#highWatermark;
  }

  get inSync(): readonly string[] {
    return [...this.#inSync];
  }

  /** In-sync replicas that do not have everything below an offset. */
  behind(offset: number): string[] {
    return this.inSync.filter((member) => this.#endOf(member) < offset);
  }

  append(values: readonly string[]): void {
    this.log.append(values);
    this.#advance();
  }

  /**
   * A follower asks for records from an offset, and so has everything before it.
   *
   * @param isAlive - it has a session, and may join the in-sync set.
   */
  followerIsAt(member: string, offset: number, isAlive: boolean): void {
    // It has less than before: a process that was started again, its memory gone.
    if (offset < this.#endOf(member)) this.#inSync.delete(member);
    this.#fetchOffsets.set(member, offset);
    if (isAlive && offset >= this.#highWatermark) this.#inSync.add(member);
    this.#advance();
  }

  /** The watermark no longer waits for a follower. */
  drop(member: string): void {
    this.#inSync.delete(member);
    this.#fetchOffsets.delete(member);
    this.#advance();
  }

  #endOf(member: string): number {
    return member === LEADER ? this.log.endOffset : (this.#fetchOffsets.get(member) ?? 0);
  }

  #advance(): void {
    const least = Math.min(...this.inSync.map((member) => this.#endOf(member)));
    this.#highWatermark = Math.max(this.#highWatermark, least);
  }
}
