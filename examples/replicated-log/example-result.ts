import type { Ack, ProduceCounts } from './clients/produce-load.ts';
import type { ExampleOptions } from './options.ts';
import type { ProcessEnd } from './processes/broker-process.ts';
import type { FollowerLog, LeaderStatus } from './wire.ts';

/** What a run measured. */
export interface ExampleResult {
  readonly options: ExampleOptions;
  readonly minInSync: number;
  readonly counts: ProduceCounts;
  readonly acks: readonly Ack[];
  /** From sending a produce to its acknowledgement, ascending. */
  readonly latenciesMs: readonly number[];
  readonly namedBehind: ReadonlyMap<string, number>;
  /** Each partition, read once more from its beginning up to its high watermark. */
  readonly logs: readonly (readonly string[])[];
  readonly consumers: readonly ConsumerResult[];
  readonly copies: readonly FollowerCopy[];
  readonly outage: Outage;
  /** The leader, when nobody asks anything of it any more. */
  readonly afterwards: LeaderStatus;
  readonly mostWatched: { readonly produce: number; readonly fetch: number };
}

export interface ConsumerResult {
  readonly partition: number;
  readonly values: readonly string[];
  readonly polls: number;
  readonly shortPolls: number;
  readonly complaints: readonly string[];
}

/** What a follower has at the end. */
export interface FollowerCopy {
  readonly member: string;
  /** When its process was started, on the clock of the machine. */
  readonly startedAtMs: number;
  readonly partitions: readonly FollowerLog[];
}

/** What became of the follower that was killed. Times are milliseconds since the kill or the restart. */
export interface Outage {
  readonly member: string;
  readonly end: ProcessEnd;
  readonly droppedAfterMs: number;
  readonly rejoinedAfterMs: number;
}

/** A process, when all is over. */
export interface ProcessFate {
  readonly name: string;
  readonly pid: number;
  readonly isRunning: boolean;
  readonly end: ProcessEnd;
}
