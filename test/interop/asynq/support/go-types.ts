/* What driver/ takes and gives. Go writes fields as they are called there, and bytes as Base64. */

/** A task with its options; what is absent is left to asynq. */
export interface GoNewTask {
  readonly type: string;
  /** Null, as nothing, is Go's nil. */
  readonly payload?: string | null;
  /** asynq 0.26. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly taskId?: string;
  readonly queue?: string;
  readonly maxRetry?: number;
  readonly timeoutMs?: number;
  readonly deadlineMs?: number;
  readonly uniqueTtlMs?: number;
  readonly processAtMs?: number;
  readonly processInMs?: number;
  readonly retentionMs?: number;
  readonly group?: string;
}

/** asynq's TaskInfo. Durations are in nanoseconds. */
export interface GoTaskInfo {
  readonly ID: string;
  readonly Queue: string;
  readonly Type: string;
  readonly Payload: string | null;
  readonly Headers?: Readonly<Record<string, string>> | null;
  readonly State: number;
  readonly MaxRetry: number;
  readonly Retried: number;
  readonly LastErr: string;
  readonly LastFailedAt: string;
  readonly Timeout: number;
  readonly Deadline: string;
  readonly Group: string;
  readonly NextProcessAt: string;
  readonly IsOrphaned: boolean;
  readonly Retention: number;
  readonly CompletedAt: string;
  readonly Result: string | null;
}

/** How Go writes that there is no time. */
export const GO_ZERO_TIME = '0001-01-01T00:00:00Z';

/** asynq's numbers of states: they are only ever in its API. */
export const GO_STATES = [
  'none',
  'active',
  'pending',
  'scheduled',
  'retry',
  'archived',
  'completed',
  'aggregating',
] as const;

/** How a server of the driver is set up; see driver/serve.go. */
export interface GoServing {
  readonly queues: Readonly<Record<string, number>>;
  readonly concurrency?: number;
  readonly retryDelayMs?: number;
  readonly groupGraceMs?: number;
  readonly groupMaxSize?: number;
  readonly shutdownMs?: number;
  readonly strictPriority?: boolean;
  readonly logsEverything?: boolean;
  readonly runsAreNotShown?: boolean;
}

/** What a handler or a logger of the driver has said. */
export interface GoEvent {
  readonly event: 'started' | 'stopped' | 'log';
  readonly task?: string;
  readonly type?: string;
  readonly queue?: string;
  readonly payload?: string | null;
  readonly headers?: Readonly<Record<string, string>> | null;
  readonly retried?: number;
  readonly maxRetry?: number;
  readonly deadline?: string;
  readonly level?: string;
  readonly text?: string;
}

/** An entry, as driver/inspect.go shows it. */
export interface GoEntry {
  readonly id: string;
  readonly spec: string;
  readonly type: string;
  readonly payload: string | null;
  readonly options: readonly string[];
  readonly next: string;
  readonly prev: string;
  readonly prevIsZero: boolean;
}
