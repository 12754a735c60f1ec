import type { WorkerInfo } from '../inspector-info.ts';
import type { TaskInfo } from '../task-info.ts';
import type { Call } from './api.ts';
import { GO_ZERO_TIME, showTime } from './show-time.ts';

/** Nobody knows yet. */
const UNKNOWN = '-';

/** What all lists say of a task. */
function showBase(call: Call, task: TaskInfo): object {
  return {
    id: task.id,
    type: task.type,
    payload: call.showPayload(task.payload, task.type),
    queue: task.queue,
    max_retry: task.maxRetry,
    retried: task.retried,
    error_message: task.lastError,
  };
}

/** @param worker - who processes it, if somebody does. */
export function showActiveTask(call: Call, task: TaskInfo, worker: WorkerInfo | undefined): object {
  return {
    ...showBase(call, task),
    start_time: showTime(worker?.startedAt, UNKNOWN),
    deadline: showTime(worker?.deadline, UNKNOWN),
    is_orphaned: task.isOrphaned,
  };
}

export function showPendingTask(call: Call, task: TaskInfo): object {
  return showBase(call, task);
}

/** Also one that is tried again. */
export function showScheduledTask(call: Call, task: TaskInfo): object {
  return { ...showBase(call, task), next_process_at: showTime(task.nextProcessAt, GO_ZERO_TIME) };
}

export function showArchivedTask(call: Call, task: TaskInfo): object {
  return { ...showBase(call, task), last_failed_at: showTime(task.lastFailedAt, GO_ZERO_TIME) };
}

export function showCompletedTask(call: Call, task: TaskInfo): object {
  return {
    ...showBase(call, task),
    completed_at: showTime(task.completedAt, GO_ZERO_TIME),
    result: showResult(call, task),
    ttl_seconds: ttlSeconds(call, task),
  };
}

export function showAggregatingTask(call: Call, task: TaskInfo): object {
  return { ...showBase(call, task), group: task.group ?? '' };
}

/** Everything that is known of a task. */
export function showTask(call: Call, task: TaskInfo): object {
  return {
    ...showBase(call, task),
    state: task.state,
    last_failed_at: showTime(task.lastFailedAt),
    timeout_seconds: Math.ceil(task.timeoutMs / 1_000),
    deadline: showTime(task.deadline),
    group: task.group ?? '',
    next_process_at: showTime(task.nextProcessAt),
    completed_at: showTime(task.completedAt),
    result: showResult(call, task),
    ttl_seconds: ttlSeconds(call, task),
  };
}

function showResult(call: Call, { result, type }: TaskInfo): string {
  return result === undefined ? '' : call.showResult(result, type);
}

/** How long a completed task is kept from now on. */
function ttlSeconds(call: Call, { completedAt, retentionMs, state }: TaskInfo): number {
  if (completedAt === undefined || state !== 'completed') return 0;
  const leftMs = completedAt.getTime() + retentionMs - call.api.wallNow();
  return Math.max(0, Math.floor(leftMs / 1_000));
}
