import { utcDay } from '../core/units.ts';
import type { Content, EntryView, QueueView, ServerView, WorkerView } from '../tasks/http/asynqmon-json.ts';
import { countsOf, type DailyStats } from '../tasks/inspector-info.ts';
import type { QueueLimits, Rate } from '../tasks/queue-limits.ts';
import { retainedUntilMs } from '../tasks/task-message.ts';
import { TASK_CHANGES, type TaskChange } from '../tasks/task-state.ts';
import type {
  ContentJson,
  DashboardAction,
  LimitsJson,
  QueueDetailJson,
  QueueJson,
  RateJson,
  RunJson,
  ScheduleJson,
  ServerJson,
  TaskDetailJson,
  TaskJson,
} from './dashboard-json.ts';
import type { SourceTask } from './tasks-source.ts';

/* Queues and tasks in the JSON of the page. What is not known is left out: JSON has no undefined. */

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
export function contentToJson(content: Content, maxBytes: number): ContentJson {
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

export function queueToJson(
  info: QueueView,
  servers: readonly ServerView[],
  rates: Pick<QueueJson, 'processedPerS' | 'failedPerS'> = {},
): QueueJson {
  const { queue, paused, groups, latencyMs, runnableMs, held, memoryUsageBytes, processed, failed } = info;
  return {
    ...{ queue, isPaused: paused, counts: countsOf(info), groups, latencyMs },
    ...(runnableMs !== undefined && { runnableMs }),
    ...(held !== undefined && { held }),
    ...{ memoryBytes: memoryUsageBytes, processed, failed },
    hasServer: servers.some(({ queues }) => Object.hasOwn(queues, queue)),
    ...rates,
  };
}

export function limitsToJson({ perKey, ...limits }: QueueLimits): LimitsJson {
  return { ...limitsOfOne(limits), ...(perKey !== undefined && { perKey: limitsOfOne(perKey) }) };
}

function limitsOfOne({ concurrency, rate }: QueueLimits): Omit<LimitsJson, 'perKey'> {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate !== undefined && { rate: rateToJson(rate) }),
  };
}

function rateToJson({ tasks, perMs, burst }: Rate): RateJson {
  return { tasks, perMs, ...(burst !== undefined && { burst }) };
}

export function dayToJson({ date, processed, failed }: DailyStats): QueueDetailJson['days'][number] {
  return { date: utcDay(date.getTime()), processed, failed };
}

// Tasks.

/** Runs in progress by queue and task, with the id of their server. */
export class Runs {
  readonly #runs = new Map<string, RunJson>();

  constructor(servers: readonly ServerView[]) {
    for (const { id, activeWorkers } of servers) {
      for (const worker of activeWorkers) {
        this.#runs.set(keyOf(worker.queue, worker.taskId), runToJson(worker, id));
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

export function taskToJson(task: SourceTask, runs?: Runs): TaskJson {
  return writeTask(task, runs?.of(task), BEGINNING);
}

export function taskDetailToJson(
  task: SourceTask,
  runs: Runs,
  allowed: ReadonlySet<DashboardAction>,
): TaskDetailJson {
  const { headers = {}, uniqueKey = '', timeoutMs = 0, deadline, retentionMs = 0, completedAt } = task;
  const run = runs.of(task);
  const isKept = task.state === 'completed' && completedAt !== undefined && task.retentionMs !== undefined;
  return {
    ...writeTask(task, run, WHOLE),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(uniqueKey !== '' && { uniqueKey }),
    ...(timeoutMs > 0 && { timeoutMs }),
    ...time('deadlineAtMs', deadline),
    ...(retentionMs > 0 && { retentionMs }),
    ...(isKept && { expiresAtMs: retainedUntilMs({ retentionMs }, completedAt.getTime()) }),
    ...(run !== undefined && { run }),
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
    ...{ id, queue, type, state, payload: contentToJson(payload, bytes) },
    ...(result !== undefined && { result: contentToJson(result, bytes) }),
    ...(group !== undefined && { group }),
    ...(key !== '' && { key }),
    ...{ retried, maxRetry },
    ...(lastError !== '' && { lastError: lastError.slice(0, characters) }),
    ...time('lastFailedAtMs', task.lastFailedAt),
    ...time('nextProcessAtMs', task.nextProcessAt),
    ...time('completedAtMs', task.completedAt),
    ...(task.isOrphaned === true && { isOrphaned: true }),
    ...(run !== undefined && { startedAtMs: run.startedAtMs, server: run.server }),
    ...(task.progressJson !== undefined && { progress: task.progressJson.slice(0, bytes) }),
  };
}

function time<Name extends string>(name: Name, date: Date | undefined): Partial<Record<Name, number>> {
  const atMs = date?.getTime();
  return atMs === undefined || Number.isNaN(atMs) ? {} : ({ [name]: atMs } as Partial<Record<Name, number>>);
}

// Servers and schedules.

export function serverToJson(server: ServerView): ServerJson {
  const { id, host, pid, status, concurrency, queues, strictPriority, startedAt, activeWorkers } = server;
  return {
    ...{ id, host, pid, status, concurrency, queues, isStrict: strictPriority },
    startedAtMs: startedAt.getTime(),
    runs: activeWorkers.map((worker) => runToJson(worker, id)),
  };
}

function runToJson({ taskId, taskType, queue, startedAt, deadline }: WorkerView, server: string): RunJson {
  return {
    ...{ taskId, taskType, queue, startedAtMs: startedAt.getTime() },
    ...time('deadlineAtMs', deadline),
    server,
  };
}

export function scheduleToJson(entry: EntryView): ScheduleJson {
  const { id, spec, taskType, taskPayload, options, nextEnqueueAt, prevEnqueueAt } = entry;
  return {
    ...{ id, spec, taskType, payload: contentToJson(taskPayload, BEGINNING.bytes), options },
    ...time('nextAtMs', nextEnqueueAt),
    ...time('previousAtMs', prevEnqueueAt),
  };
}
