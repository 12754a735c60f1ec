import { utcDay } from '../core/units.ts';
import type { Content, EntryView, QueueView, ServerView, WorkerView } from '../tasks/http/asynqmon-json.ts';
import { countsOf, type DailyStats } from '../tasks/inspector-info.ts';
import { retainedUntilMs } from '../tasks/task-message.ts';
import { TASK_CHANGES, type TaskChange } from '../tasks/task-state.ts';
import type {
  ContentJson,
  DashboardAction,
  QueueDetailJson,
  QueueJson,
  RunJson,
  ScheduleJson,
  ServerJson,
  TaskDetailJson,
  TaskJson,
} from './dashboard-json.ts';
import type { SourceTask } from './tasks-source.ts';

/* Queues and tasks in the JSON of the page, which leaves out what is undefined. */

/** How much is sent of a payload or a result, in bytes, and of an error, in characters. */
interface Extent {
  readonly bytes: number;
  readonly characters: number;
}

/** In a list. */
const BEGINNING: Extent = { bytes: 500, characters: 1_000 };

/** Of one task. */
const WHOLE: Extent = { bytes: 1_000_000, characters: 1_000_000 };

/** Returns bytes as text, if they are UTF-8, otherwise as base64. */
export function contentForPage(content: Content, maxBytes: number): ContentJson {
  if ('shown' in content) return { text: content.shown, isCut: content.shown.endsWith('…') };
  const isCut = content.length > maxBytes;
  const beginning = isCut ? content.subarray(0, maxBytes) : content;
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return { bytes: content.length, text: decoder.decode(beginning, { stream: isCut }), isCut };
  } catch {
    return { bytes: content.length, base64: Buffer.from(beginning).toString('base64'), isCut };
  }
}

export function queueForPage(
  info: QueueView,
  servers: readonly ServerView[],
  rates: Pick<QueueJson, 'processedPerS' | 'failedPerS'> = {},
): QueueJson {
  const { queue, paused, groups, latencyMs, runnableMs, held, memoryUsageBytes, processed, failed } = info;
  return {
    ...{ queue, isPaused: paused, counts: countsOf(info), groups, latencyMs, runnableMs, held },
    ...{ memoryBytes: memoryUsageBytes, processed, failed },
    hasServer: servers.some(({ queues }) => Object.hasOwn(queues, queue)),
    ...rates,
  };
}

export function dayForPage({ date, processed, failed }: DailyStats): QueueDetailJson['days'][number] {
  return { date: utcDay(date.getTime()), processed, failed };
}

// Tasks.

/** Runs in progress by queue and task, with the id of their server. */
export class Runs {
  readonly #runs = new Map<string, RunJson>();

  constructor(servers: readonly ServerView[]) {
    for (const { id, activeWorkers } of servers) {
      for (const worker of activeWorkers) {
        this.#runs.set(keyOf(worker.queue, worker.taskId), runForPage(worker, id));
      }
    }
  }

  of({ queue, id, state }: Pick<SourceTask, 'queue' | 'id' | 'state'>): RunJson | undefined {
    return state === 'active' ? this.#runs.get(keyOf(queue, id)) : undefined;
  }
}

function keyOf(queue: string, id: string): string {
  return `${queue.length}:${queue}${id}`;
}

export function taskForPage(task: SourceTask, runs?: Runs): TaskJson {
  return writeTask(task, runs?.of(task), BEGINNING);
}

export function taskDetailForPage(
  task: SourceTask,
  runs: Runs,
  allowed: ReadonlySet<DashboardAction>,
): TaskDetailJson {
  const { headers = {}, uniqueKey = '', timeoutMs = 0, deadline, retentionMs = 0, completedAt } = task;
  const run = runs.of(task);
  const isKept = task.state === 'completed' && completedAt !== undefined && task.retentionMs !== undefined;
  return {
    ...writeTask(task, run, WHOLE),
    headers: Object.keys(headers).length > 0 ? headers : undefined,
    uniqueKey: uniqueKey || undefined,
    timeoutMs: timeoutMs || undefined,
    deadlineAtMs: msOf(deadline),
    retentionMs: retentionMs || undefined,
    expiresAtMs: isKept ? retainedUntilMs({ retentionMs }, completedAt.getTime()) : undefined,
    run,
    actions: actionsFor(task, allowed),
  };
}

function actionsFor(
  { state }: SourceTask,
  allowed: ReadonlySet<DashboardAction>,
): readonly (TaskChange | 'cancel')[] {
  const changes = Object.keys(TASK_CHANGES) as TaskChange[];
  const possible = changes.filter((change) => !TASK_CHANGES[change].refused.includes(state));
  const all = state === 'active' ? [...possible, 'cancel' as const] : possible;
  return all.filter((action) => allowed.has(action));
}

function writeTask(task: SourceTask, run: RunJson | undefined, { bytes, characters }: Extent): TaskJson {
  const { id, queue, type, state, payload, result, group, key = '', retried, maxRetry, lastError } = task;
  return {
    ...{ id, queue, type, state, group, retried, maxRetry },
    payload: contentForPage(payload, bytes),
    result: result && contentForPage(result, bytes),
    key: key || undefined,
    lastError: lastError.slice(0, characters) || undefined,
    lastFailedAtMs: msOf(task.lastFailedAt),
    nextProcessAtMs: msOf(task.nextProcessAt),
    completedAtMs: msOf(task.completedAt),
    isOrphaned: task.isOrphaned === true || undefined,
    startedAtMs: run?.startedAtMs,
    server: run?.server,
    progress: task.progressJson?.slice(0, bytes),
  };
}

/** Returns undefined for a date that is not valid, too. */
function msOf(date: Date | undefined): number | undefined {
  const atMs = date?.getTime();
  return Number.isNaN(atMs) ? undefined : atMs;
}

// Servers and schedules.

export function serverForPage(server: ServerView): ServerJson {
  const { id, host, pid, status, concurrency, queues, strictPriority, startedAt, activeWorkers } = server;
  return {
    ...{ id, host, pid, status, concurrency, queues, isStrict: strictPriority },
    startedAtMs: startedAt.getTime(),
    runs: activeWorkers.map((worker) => runForPage(worker, id)),
  };
}

function runForPage({ taskId, taskType, queue, startedAt, deadline }: WorkerView, server: string): RunJson {
  return {
    ...{ taskId, taskType, queue, server },
    startedAtMs: startedAt.getTime(),
    deadlineAtMs: msOf(deadline),
  };
}

export function scheduleForPage(entry: EntryView): ScheduleJson {
  const { id, spec, taskType, taskPayload, options, nextEnqueueAt, prevEnqueueAt } = entry;
  return {
    ...{ id, spec, taskType, payload: contentForPage(taskPayload, BEGINNING.bytes), options },
    nextAtMs: msOf(nextEnqueueAt),
    previousAtMs: msOf(prevEnqueueAt),
  };
}
