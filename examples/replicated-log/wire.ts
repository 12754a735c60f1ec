/** What goes over the wire, as JSON. */
import type { CompletedCounts } from './broker/purgatory-counts.ts';

/** Body of `POST /produce`: records for one or more partitions. */
export interface ProduceRequest {
  readonly partitions: readonly { readonly partition: number; readonly values: readonly string[] }[];
}

/** Answer 200 to `POST /produce`. */
export interface ProduceAnswer {
  readonly partitions: readonly {
    readonly partition: number;
    readonly firstOffset: number;
    /** The replicas that have the records, if `acks=all` was asked for. */
    readonly inSync: readonly string[];
  }[];
}

/** In the answer 504 to `POST /produce`: a partition whose replicas kept it waiting. */
export interface MissingReplicas {
  readonly partition: number;
  readonly requiredOffset: number;
  readonly highWatermark: number;
  /** In-sync replicas that do not have the records. */
  readonly behind: readonly string[];
}

/** Answer 200 to `GET /fetch` and to `GET /replicate`. */
export interface FetchAnswer {
  readonly partitions: readonly {
    readonly partition: number;
    readonly firstOffset: number;
    readonly values: readonly string[];
    readonly highWatermark: number;
  }[];
}

/** A purgatory, as its gauges and counters tell. */
export interface PurgatoryStatus {
  readonly watched: number;
  readonly numDelayed: number;
  readonly watchedKeys: number;
  readonly completed: CompletedCounts;
  /** Expired although the condition held. */
  readonly missedTriggers: number;
}

/** Answer to `GET /status` of the leader. */
export interface LeaderStatus {
  readonly members: readonly string[];
  readonly partitions: readonly {
    readonly partition: number;
    readonly logEnd: number;
    readonly highWatermark: number;
    readonly inSync: readonly string[];
    readonly expiredProduces: number;
  }[];
  readonly purgatories: {
    readonly produce: PurgatoryStatus;
    readonly fetch: PurgatoryStatus;
    readonly sessions: PurgatoryStatus;
    readonly inSync: PurgatoryStatus;
  };
  /** Errors of operations, as `onError` was told. */
  readonly errors: readonly string[];
}

/** Answer to `GET /log` of a follower: its copy of a partition. */
export interface FollowerLog {
  readonly values: readonly string[];
  /** When it got each record, on the clock of the machine. */
  readonly appendedAtMs: readonly number[];
}
