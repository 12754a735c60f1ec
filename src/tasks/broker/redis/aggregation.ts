import { randomUUID } from 'node:crypto';
import { wrongValue } from '../../../core/errors.ts';
import { requireFiniteNumber, requireIntegerAtLeast } from '../../../core/validate.ts';
import { requireDuration } from '../../task-options.ts';
import type { TaskMessage } from '../../task-message.ts';
import { setLost } from '../broker-errors.ts';
import type { GroupInfo, GroupLimits, GroupTaking, NewTask, TaskRecord, TaskSet } from '../broker.ts';
import { argumentsOf, recordOfNew, type Enqueuing } from './enqueuing.ts';
import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { secondsDown, secondsUp } from './redis-time.ts';
import { listOf, messageIfOf, numberOf, textOf } from './replies.ts';
import type { ScriptArgument, ScriptReply } from './script.ts';
import { ARCHIVE_FROM_SET } from './scripts/archive-from-set.ts';
import { LIST_GROUPS } from './scripts/list-groups.ts';
import { REPLACE_SET } from './scripts/replace-set.ts';
import { TAKE_GROUP } from './scripts/take-group.ts';

/** What one script takes at most, of a group without a limit: the rest makes a set of its own. */
const MAX_SET_SIZE = 10_000;

/** Bytes after which a script takes no more tasks of a group, so that its answer arrives in time. */
const MAX_SET_BYTES = 8_388_608;

/** Groups that one script counts. */
const GROUPS_PER_SCRIPT = 1_000;

/** Groups: tasks that wait for others, and become one. */

export async function groups(access: RedisAccess, queue: string): Promise<readonly GroupInfo[]> {
  const { groups: key, groupPrefix } = access.keysOf(queue);
  const infos = new Map<string, GroupInfo>();
  let cursor = '0';
  do {
    const reply = listOf(await access.run(LIST_GROUPS, [key], [groupPrefix, cursor, GROUPS_PER_SCRIPT]));
    for (let at = 1; at < reply.length; at += 2) {
      const group = textOf(reply[at]);
      infos.set(group, { group, size: numberOf(reply[at + 1]) });
    }
    cursor = textOf(reply[0]);
  } while (cursor !== '0');
  return [...infos.values()].sort((a, b) => (a.group < b.group ? -1 : 1));
}

export async function takeGroup(
  access: RedisAccess,
  queue: string,
  group: string,
  limits: GroupLimits,
  holdMs: number,
): Promise<GroupTaking> {
  requireLimits(limits);
  requireDuration('holdMs', holdMs);
  const keys = access.keysOf(queue);
  const id = randomUUID();
  const nowMs = access.wallNowMs;
  const { graceMs, maxDelayMs, maxSize } = limits;
  const reply = listOf(
    await access.run(
      TAKE_GROUP,
      [keys.group(group), keys.aggregationSet(group, id), keys.aggregationSets, keys.groups],
      [
        secondsDown(nowMs),
        secondsUp(graceMs),
        secondsUp(maxDelayMs),
        maxSize,
        maxSize === 0 ? MAX_SET_SIZE : maxSize,
        secondsUp(nowMs + holdMs),
        group,
        keys.taskPrefix,
        MAX_SET_BYTES,
      ],
    ),
  );
  const againInS = numberOf(reply[0]);
  const messages = await readableMembers(access, keys, queue, keys.aggregationSet(group, id), reply);
  return {
    set: messages.length === 0 ? undefined : { id, queue, group, messages },
    againInMs: againInS < 0 ? undefined : againInS * 1_000,
  };
}

/** Those that cannot be read are archived: they would keep the others of the set from being replaced, for ever. */
async function readableMembers(
  access: RedisAccess,
  keys: QueueKeys,
  queue: string,
  set: string,
  reply: readonly ScriptReply[],
): Promise<TaskMessage[]> {
  const messages: TaskMessage[] = [];
  const unreadable: string[] = [];
  for (let at = 1; at < reply.length; at += 2) {
    const id = textOf(reply[at]);
    const message = messageIfOf(queue, id, reply[at + 1]);
    if (message === undefined) unreadable.push(id);
    else messages.push(message);
  }
  if (unreadable.length > 0) {
    const args = [keys.taskPrefix, secondsUp(access.wallNowMs), keys.settledChannel, ...unreadable];
    await access.run(ARCHIVE_FROM_SET, [set, keys.aggregationSets, keys.archived], args);
  }
  return messages;
}

export async function replaceSet(
  access: RedisAccess,
  enqueuing: Enqueuing,
  set: TaskSet,
  task: NewTask,
): Promise<TaskRecord> {
  const { queue, group, id, messages } = set;
  if (task.message.queue !== queue) {
    throw wrongValue('task.message.queue', `the queue of the set, '${queue}'`, task.message.queue);
  }
  const keys = access.keysOf(queue);
  const words = argumentsOf(task, access.wallNowMs);
  const locks: ScriptArgument[] = [];
  for (const message of messages) if (message.uniqueKey !== '') locks.push(message.id, message.uniqueKey);
  const reply = await access.run(REPLACE_SET, await enqueuing.keysFor(queue), [
    access.wallNowDigits,
    ...words.words,
    keys.aggregationSet(group, id),
    ...locks,
  ]);
  if (reply === null) throw setLost(queue, group);
  return recordOfNew(words, reply, access.wallNowMs);
}

function requireLimits({ graceMs, maxDelayMs, maxSize }: GroupLimits): void {
  requireFiniteNumber('limits.graceMs', graceMs);
  requireFiniteNumber('limits.maxDelayMs', maxDelayMs);
  requireIntegerAtLeast('limits.maxSize', 0, maxSize);
}
