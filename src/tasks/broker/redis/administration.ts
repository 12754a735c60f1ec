import type { TaskMessage } from '../../task-message.ts';
import type { TaskState } from '../../task-state.ts';
import { encodeTaskMessage } from '../../wire/task-message-codec.ts';
import {
  bulkState,
  queueNotEmpty,
  queueNotFound,
  queueState,
  taskNotFound,
  taskState,
} from '../broker-errors.ts';
import { requireQueue } from './inspection.ts';
import { QUEUES_KEY, type QueueKeys } from './keys.ts';
import { placesOf, sourcesOf, type Source } from './places.ts';
import type { RedisAccess } from './redis-access.ts';
import { nanosOf, secondsDown, secondsUp } from './redis-time.ts';
import { listOf, messageFor, numberOf, textOf } from './replies.ts';
import type { Script, ScriptArgument, ScriptReply } from './script.ts';
import { ARCHIVE_SOME } from './scripts/archive-some.ts';
import { ARCHIVE_TASK } from './scripts/archive-task.ts';
import { CLEAR_SOME } from './scripts/clear-some.ts';
import { DELETE_SOME } from './scripts/delete-some.ts';
import { DELETE_TASK } from './scripts/delete-task.ts';
import { PAUSE } from './scripts/pause.ts';
import { REMOVE_QUEUE } from './scripts/remove-queue.ts';
import { RESUME } from './scripts/resume.ts';
import { RUN_SOME } from './scripts/run-some.ts';
import { RUN_TASK } from './scripts/run-task.ts';
import { UPDATE_MESSAGE } from './scripts/update-message.ts';

/** What somebody does to single tasks, to many, and to whole queues, by hand. */

/** What one script moves at most (B17). */
const TASKS_PER_SCRIPT = 500;

const DAY_MS = 86_400_000;
/** Days whose counts are kept, and one for whose clock is ahead. */
const DAYS_COUNTED = 91;

export function deleteTask(access: RedisAccess, queue: string, id: string): Promise<void> {
  const { settledChannel } = access.keysOf(queue);
  return changeTask(access, queue, id, 'deleted', DELETE_TASK, [settledChannel]);
}

export function runTask(access: RedisAccess, queue: string, id: string): Promise<void> {
  const { workChannel } = access.keysOf(queue);
  return changeTask(access, queue, id, 'run now', RUN_TASK, [nanosOf(access.wallNowMs), workChannel]);
}

export function archiveTask(access: RedisAccess, queue: string, id: string): Promise<void> {
  const { taskPrefix, settledChannel } = access.keysOf(queue);
  const args = [secondsUp(access.wallNowMs), taskPrefix, ...archiveLimits(access), settledChannel];
  return changeTask(access, queue, id, 'archived', ARCHIVE_TASK, args);
}

/** Read, changed and written, again if somebody else was faster. */
export async function updatePayload(
  access: RedisAccess,
  queue: string,
  id: string,
  payload: Uint8Array,
): Promise<void> {
  await requireQueue(access, queue);
  const key = access.keysOf(queue).task(id);
  for (;;) {
    const msg = await access.ask((client) => client.hgetBuffer(key, 'msg'));
    if (msg === null) throw taskNotFound(queue, id);
    const changed: TaskMessage = { ...messageFor(queue, id, msg), payload };
    const reply = await access.run(UPDATE_MESSAGE, [key], [msg, Buffer.from(encodeTaskMessage(changed))]);
    if (reply === -1) continue;
    checkOutcome(queue, id, 'changed', reply);
    return;
  }
}

export async function pause(access: RedisAccess, queue: string): Promise<void> {
  await requireQueue(access, queue);
  const { paused } = access.keysOf(queue);
  const keys = access.isCluster ? [paused] : [paused, QUEUES_KEY];
  const reply = await access.run(PAUSE, keys, [secondsDown(access.wallNowMs), queue]);
  if (reply === -1) throw queueNotFound(queue);
  if (reply !== 1) throw queueState(queue, 'paused already');
}

export async function resume(access: RedisAccess, queue: string): Promise<void> {
  await requireQueue(access, queue);
  const { paused, pending, workChannel } = access.keysOf(queue);
  if ((await access.run(RESUME, [paused, pending], [workChannel])) !== 1)
    throw queueState(queue, 'not paused');
}

export function deleteAll(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active') return refuse(access, queue, state, 'deleted');
  const { taskPrefix, settledChannel } = access.keysOf(queue);
  return changeAll(access, queue, state, group, DELETE_SOME, [], () => [taskPrefix, settledChannel]);
}

export function runAll(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active' || state === 'pending') return refuse(access, queue, state, 'run now');
  const { taskPrefix, pending, workChannel } = access.keysOf(queue);
  return changeAll(access, queue, state, group, RUN_SOME, [pending], () => [
    taskPrefix,
    nanosOf(access.wallNowMs),
    workChannel,
  ]);
}

export function archiveAll(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active' || state === 'archived') return refuse(access, queue, state, 'archived');
  const { taskPrefix, archived, settledChannel } = access.keysOf(queue);
  return changeAll(access, queue, state, group, ARCHIVE_SOME, [archived], () => [
    taskPrefix,
    secondsUp(access.wallNowMs),
    ...archiveLimits(access),
    settledChannel,
  ]);
}

/** Its tasks first, piece by piece: whatever interrupts that leaves a queue that has fewer, and nothing else. */
export async function removeQueue(access: RedisAccess, queue: string, force: boolean): Promise<void> {
  const keys = access.keysOf(queue);
  await requireQueue(access, queue);
  const places = placesOf(keys);
  const all = [...places, ...otherKeys(access, keys)];
  for (;;) {
    if (force) await clear(access, keys, places, queue);
    const args = [keys.groupPrefix, access.isCluster ? '' : QUEUES_KEY, queue];
    const [active = 0, size = 0] = listOf(await access.run(REMOVE_QUEUE, all, args)).map(numberOf);
    if (size === 0) break;
    if (active > 0) throw queueNotEmpty(queue, 'active tasks');
    if (!force) throw queueNotEmpty(queue, `${size} tasks`);
  }
  if (access.isCluster) await unregister(access, queue, places);
}

/** In a cluster that is a step of its own. A task that has come in between makes the queue again. */
async function unregister(access: RedisAccess, queue: string, places: readonly string[]): Promise<void> {
  await access.ask((client) => client.srem(QUEUES_KEY, queue));
  const isThere = await access.ask((client) => client.exists(...places));
  if (isThere > 0) await access.ask((client) => client.sadd(QUEUES_KEY, queue));
}

async function clear(
  access: RedisAccess,
  { groupPrefix, taskPrefix, settledChannel }: QueueKeys,
  places: readonly string[],
  queue: string,
): Promise<void> {
  for (;;) {
    const args = [groupPrefix, taskPrefix, TASKS_PER_SCRIPT, settledChannel];
    const gone = numberOf(await access.run(CLEAR_SOME, places, args));
    if (gone < 0) throw queueNotEmpty(queue, 'active tasks');
    if (gone < TASKS_PER_SCRIPT) return;
  }
}

function otherKeys(access: RedisAccess, keys: QueueKeys): string[] {
  const others = [keys.lease, keys.paused, keys.processed, keys.failed, keys.epoch, keys.ticks];
  const nowMs = access.wallNowMs;
  for (let daysAgo = -1; daysAgo <= DAYS_COUNTED; daysAgo++) {
    const ms = nowMs - daysAgo * DAY_MS;
    others.push(keys.processedOn(ms), keys.failedOn(ms));
  }
  return others;
}

async function changeTask(
  access: RedisAccess,
  queue: string,
  id: string,
  verb: string,
  script: Script,
  args: readonly ScriptArgument[],
): Promise<void> {
  await requireQueue(access, queue);
  const keys = access.keysOf(queue);
  const reply = await access.run(
    script,
    [...leaveKeys(keys), keys.task(id)],
    [keys.groupPrefix, id, ...args],
  );
  checkOutcome(queue, id, verb, reply);
}

/** The keys that LEAVE in scripts/parts.ts needs. */
function leaveKeys(keys: QueueKeys): string[] {
  const { pending, scheduled, retry, archived, completed, groups, aggregationSets } = keys;
  return [pending, scheduled, retry, archived, completed, groups, aggregationSets];
}

function checkOutcome(queue: string, id: string, verb: string, reply: ScriptReply): void {
  if (reply === 0) throw taskNotFound(queue, id);
  if (reply !== 1) throw taskState(queue, id, textOf(reply), verb);
}

/** What the archive gives up. */
function archiveLimits(access: RedisAccess): [cutoffS: number, max: number] {
  const { maxArchived, archiveRetentionMs } = access.options;
  return [secondsDown(access.wallNowMs - archiveRetentionMs), maxArchived];
}

/** Not to more than there were at first, so that it ends although others come as fast. */
async function changeAll(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
  script: Script,
  keys: readonly string[],
  args: () => readonly ScriptArgument[],
): Promise<number> {
  await requireQueue(access, queue);
  let done = 0;
  for (const source of await sourcesOf(access, queue, state, group, false)) {
    done += await changeSource(access, queue, state, source, script, keys, args);
  }
  return done;
}

async function changeSource(
  access: RedisAccess,
  queue: string,
  state: TaskState,
  source: Source,
  script: Script,
  keys: readonly string[],
  args: () => readonly ScriptArgument[],
): Promise<number> {
  const all = [source.key, access.keysOf(queue).groups, ...keys];
  let done = 0;
  while (done < source.size) {
    const limit = Math.min(source.size - done, TASKS_PER_SCRIPT);
    const count = numberOf(await access.run(script, all, [state, limit, source.group, ...args()]));
    done += count;
    if (count < limit) break;
  }
  return done;
}

async function refuse(access: RedisAccess, queue: string, state: TaskState, verb: string): Promise<never> {
  await requireQueue(access, queue);
  throw bulkState(state, verb);
}
