import type { Content, QueueView, ServerView, WorkerView } from '../tasks/http/asynqmon-json.ts';
import { expiryMsOf, optionValuesOf } from '../tasks/task-options.ts';
import { TASK_CHANGES, type TaskChange } from '../tasks/task-state.ts';
import {
  LISTED_FIELDS,
  type ContentJson,
  type DashboardAction,
  type JsonOf,
  type QueueJson,
  type RunJson,
  type ServerJson,
  type TaskDetailJson,
  type TaskJson,
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
function contentForPage(content: Content, maxBytes: number): ContentJson {
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

/** Returns an info as JSON; by default, of its bytes as much as a list has. */
export function jsonOf<Info extends object>(info: Info, { bytes } = BEGINNING): JsonOf<Info> {
  const fields = Object.entries(info).map(([name, value]: [string, unknown]) => {
    if (value instanceof Date) return [`${name}Ms`, msOf(value)] as const;
    return [name, isContent(value) ? contentForPage(value, bytes) : value] as const;
  });
  return Object.fromEntries(fields) as JsonOf<Info>;
}

/** A queue may be called `shown`: the queues of a server have a number for each name. */
function isContent(value: unknown): value is Content {
  if (value instanceof Uint8Array) return true;
  return typeof (value as { readonly shown?: unknown } | null | undefined)?.shown === 'string';
}

export function queueForPage(
  { timestamp: _timestamp, ...info }: QueueView,
  servers: readonly ServerView[],
  rates: Pick<QueueJson, 'processedPerS' | 'failedPerS'> = {},
): QueueJson {
  const hasServer = servers.some(({ queues }) => Object.hasOwn(queues, info.queue));
  return { ...jsonOf(info), hasServer, ...rates };
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

export function taskForPage(task: SourceTask, runs: Runs): TaskJson {
  return writeTask(task, runs.of(task), BEGINNING);
}

export function taskDetailForPage(
  task: SourceTask,
  runs: Runs,
  allowed: ReadonlySet<DashboardAction>,
): TaskDetailJson {
  return {
    ...writeTask(task, runs.of(task), WHOLE),
    options: optionValuesOf(task).map(({ label, kind, value }) => ({
      ...{ label, kind, value: value instanceof Date ? msOf(value) : value },
    })),
    uniqueKey: task.uniqueKey,
    expiresAtMs: expiryMsOf(task),
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

function writeTask(task: SourceTask, run: RunJson | undefined, extent: Extent): TaskJson {
  const listed = Object.fromEntries(LISTED_FIELDS.map((name) => [name, task[name]])) as unknown as SourceTask;
  return {
    ...jsonOf(listed, extent),
    lastError: task.lastError.slice(0, extent.characters),
    ...{ run, progress: task.progressJson?.slice(0, extent.bytes) },
  };
}

/** Returns undefined for a date that is not valid, too. */
function msOf(date: Date | undefined): number | undefined {
  const atMs = date?.getTime();
  return Number.isNaN(atMs) ? undefined : atMs;
}

// Servers and schedules.

export function serverForPage({ activeWorkers, ...server }: ServerView): ServerJson {
  return { ...jsonOf(server), runs: activeWorkers.map((worker) => runForPage(worker, server.id)) };
}

function runForPage({ taskPayload: _payload, ...worker }: WorkerView, server: string): RunJson {
  return { ...jsonOf(worker), server };
}
