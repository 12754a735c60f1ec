import { requireIntegerAtLeast } from '../../../core/validate.ts';
import type { TaskMessage } from '../../task-message.ts';
import { hasOwnKeys } from '../../require-text.ts';
import { isTaskState, type TaskState } from '../../task-state.ts';
import { queueNotFound, taskNotFound } from '../broker-errors.ts';
import type { DayStats, Page, QueueStats, TaskRecord } from '../broker.ts';
import { QUEUES_KEY } from './keys.ts';
import { sourcesOf, type Source } from './places.ts';
import type { RedisAccess } from './redis-access.ts';
import { msOfSeconds } from './redis-time.ts';
import { bytesOf, listOf, messageFor, numberOf, textOf, unreadable } from './replies.ts';
import type { ScriptReply } from './script.ts';
import { LIST_TASKS } from './scripts/list-tasks.ts';
import { QUEUE_STATS } from './scripts/queue-stats.ts';
import { TASK } from './scripts/task.ts';

/** What there is to see of queues and their tasks; nothing here changes anything. */

const DAY_MS = 86_400_000;
const NANOS_PER_MS = 1_000_000;

/** asynq's: tasks of each state that are weighed. */
const SAMPLE = 20;

/** What one script shows at most. */
const TASKS_PER_SCRIPT = 1_000;

/** By name; without those whose keys could be those of another queue. */
export async function queueNames(access: RedisAccess): Promise<readonly string[]> {
  return (await access.ask((client) => client.smembers(QUEUES_KEY))).filter(hasOwnKeys).sort();
}

/** @throws EscapementError `ERR_QUEUE_NOT_FOUND` */
export async function requireQueue(access: RedisAccess, queue: string): Promise<void> {
  const isThere = await access.ask((client) => client.sismember(QUEUES_KEY, queue));
  if (isThere !== 1) throw queueNotFound(queue);
}

export async function queueStats(access: RedisAccess, queue: string): Promise<QueueStats> {
  const keys = access.keysOf(queue);
  await requireQueue(access, queue);
  const nowMs = access.wallNowMs;
  const reply = listOf(
    await access.run(
      QUEUE_STATS,
      [
        keys.active,
        keys.pending,
        keys.scheduled,
        keys.retry,
        keys.archived,
        keys.completed,
        keys.groups,
        keys.aggregationSets,
        keys.processedOn(nowMs),
        keys.failedOn(nowMs),
        keys.processed,
        keys.failed,
        keys.paused,
      ],
      [keys.taskPrefix, keys.groupPrefix, SAMPLE],
    ),
  ).map(numberOf);
  const [active = 0, pending = 0, scheduled = 0, retry = 0, archived = 0, completed = 0] = reply;
  const [aggregating = 0, groups = 0, sinceNs = 0, memoryBytes = 0] = reply.slice(6);
  const [processed = 0, failed = 0, processedTotal = 0, failedTotal = 0, paused = 0] = reply.slice(10);
  return {
    queue,
    counts: { active, pending, scheduled, retry, archived, completed, aggregating },
    groups,
    latencyMs: sinceNs === 0 ? 0 : Math.max(nowMs - sinceNs / NANOS_PER_MS, 0),
    memoryBytes,
    processed,
    failed,
    processedTotal,
    failedTotal,
    isPaused: paused === 1,
    atMs: nowMs,
  };
}

export async function history(
  access: RedisAccess,
  queue: string,
  days: number,
): Promise<readonly DayStats[]> {
  requireIntegerAtLeast('days', 1, days);
  const keys = access.keysOf(queue);
  await requireQueue(access, queue);
  const nowMs = access.wallNowMs;
  const moments = Array.from({ length: days }, (_, daysAgo) => nowMs - daysAgo * DAY_MS);
  const names = moments.flatMap((ms) => [keys.processedOn(ms), keys.failedOn(ms)]);
  const counts = await access.ask((client) => client.mget(...names));
  return moments.map((ms, day) => ({
    queue,
    date: new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length),
    processed: Number(counts[2 * day] ?? 0),
    failed: Number(counts[2 * day + 1] ?? 0),
  }));
}

export async function task(access: RedisAccess, queue: string, id: string): Promise<TaskRecord> {
  const keys = access.keysOf(queue);
  const reply = listOf(await access.run(TASK, [keys.task(id), keys.lease, keys.scheduled, keys.retry], [id]));
  const state = textOf(reply[1]);
  if (!isTaskState(state)) {
    await requireQueue(access, queue);
    throw taskNotFound(queue, id);
  }
  const [message, , result, progress, lease, due] = reply;
  const score = state === 'active' ? lease : due;
  return recordOf(access, queue, id, state, { message, result, progress, score });
}

/** A page far behind what comes first costs Redis a walk to it only if the tasks are in a list: active or pending ones. */
export async function tasks(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  page: Page,
  group: string | undefined,
): Promise<readonly TaskRecord[]> {
  requireIntegerAtLeast('page.page', 1, page.page);
  requireIntegerAtLeast('page.size', 1, page.size);
  await requireQueue(access, queue);
  const records: TaskRecord[] = [];
  let skip = (page.page - 1) * page.size;
  for (const source of await sourcesOf(access, queue, state, group, true)) {
    if (skip >= source.size) {
      skip -= source.size;
      continue;
    }
    await readFrom(access, queue, state, source, skip, page.size, records);
    if (records.length >= page.size) break;
    skip = 0;
  }
  return records;
}

async function readFrom(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  source: Source,
  skip: number,
  upTo: number,
  records: TaskRecord[],
): Promise<void> {
  const { lease, taskPrefix } = access.keysOf(queue);
  const kind = source.isList ? 'list' : 'zset';
  const asksLease = state === 'active' ? 1 : 0;
  for (let first = skip; first < source.size && records.length < upTo; first += TASKS_PER_SCRIPT) {
    const last = first + Math.min(TASKS_PER_SCRIPT, upTo - records.length) - 1;
    const args = [kind, first, last, taskPrefix, asksLease];
    const reply = listOf(await access.run(LIST_TASKS, [source.key, lease], args));
    for (let at = 0; at < reply.length; at += 5) {
      const [id, message, result, progress, score] = reply.slice(at, at + 5);
      records.push(recordOf(access, queue, textOf(id), state, { message, result, progress, score }));
    }
  }
}

interface Fields {
  readonly message: ScriptReply | undefined;
  readonly result: ScriptReply | undefined;
  readonly progress: ScriptReply | undefined;
  /** Of the zset it is in; of an active one when its lease ends. */
  readonly score: ScriptReply | undefined;
}

function recordOf(
  access: RedisAccess,
  queue: string,
  id: string,
  state: TaskState,
  { message, result, progress, score }: Fields,
): TaskRecord {
  const nowMs = access.wallNowMs;
  const isWaiting = state === 'scheduled' || state === 'retry';
  const atMs = msOfSeconds(numberOf(score));
  return {
    message: readable(queue, id, message),
    state,
    nextProcessAtMs: state === 'pending' ? nowMs : isWaiting ? atMs : 0,
    result: bytesOf(result),
    progress: Buffer.isBuffer(progress) ? textOf(progress) : undefined,
    isOrphaned: state === 'active' && atMs <= nowMs,
  };
}

function readable(queue: string, id: string, message: ScriptReply | undefined): TaskMessage {
  try {
    return messageFor(queue, id, message);
  } catch (error) {
    return unreadable(queue, id, bytesOf(message), error);
  }
}
