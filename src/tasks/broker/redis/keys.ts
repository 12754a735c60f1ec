import { utcDay } from '../../../core/units.ts';
import { requireExistingQueueName } from '../../argument-checks.ts';
import { LOCK_PREFIX, queuePrefixOf } from '../../task-identity.ts';

/*
 * Every key of asynq, and the keys and channels that we add, whose names contain `x:`. No other file builds keys, except that the key
 * of a unique lock is computed by the client, as in asynq, and is part of the message: see task-identity.ts.
 *
 * The conventions of the scripts:
 *
 *   - KEYS[1] of a script of a queue is the prefix of its keys, as QUEUE_KEYS has them: less goes over the wire. The headers of
 *     the scripts do not repeat it, nor the last argument of those that call `nowMs` of flow.ts: the time in milliseconds, or '' for
 *     that of Redis. Other KEYS are whole keys. `QUEUES` in a script is KEYS[2], if that is {@link QUEUES_KEY}; else false.
 *   - Times and durations, in keys and in ARGV, are whole Unix seconds unless the text names another unit.
 *   - '' stands for an absent value, and `ARGV[3…]  per task: id, epoch` for groups of arguments up to the last one.
 *
 * A cluster places a key by the part between `{` and `}`: all keys of a queue are on one node, so a script may use all of them.
 * Queue names, groups and ids are not escaped. Keys of two queues cannot be equal, because names with `}:` are refused, nor can those
 * of two tasks. The key of the group `a:SETID` would be that of a set of group `a`, whose SETID is a random UUID.
 */

/** SET of the names of all queues: a queue is added before its first task. */
export const QUEUES_KEY = 'asynq:queues';

/** ZSET of {@link serverKey}, scored by when it expires. */
export const SERVERS_KEY = 'asynq:servers';

/** ZSET of {@link workersKey}, scored by when it expires. */
export const WORKERS_KEY = 'asynq:workers';

/** ZSET of {@link schedulerKey}, scored by when it expires. */
export const SCHEDULERS_KEY = 'asynq:schedulers';

/** Channel: the id of a task whose run must stop, in any queue. */
export const CANCEL_CHANNEL = 'asynq:cancel';

/** Ours. Channel: requests to stop a run, in JSON; see notifications.ts. */
export const CANCEL_REQUEST_CHANNEL = 'asynq:x:cancel';

/** Ours. Channel: the answer to one such request. */
export function cancelReplyChannel(id: string): string {
  return `asynq:x:cancel-reply:${id}`;
}

/** STRING that expires: a ServerInfo. */
export function serverKey(host: string, pid: number, serverId: string): string {
  return `asynq:servers:{${host}:${pid}:${serverId}}`;
}

/** HASH that expires: the id of a task and its WorkerInfo. */
export function workersKey(host: string, pid: number, serverId: string): string {
  return `asynq:workers:{${host}:${pid}:${serverId}}`;
}

/** LIST of SchedulerEntry that expires, the last one first. */
export function schedulerKey(schedulerId: string): string {
  return `asynq:schedulers:{${schedulerId}}`;
}

/** ZSET of SchedulerEnqueueEvent, scored by its time: a thousand at most. */
export function schedulerHistoryKey(entryId: string): string {
  return `asynq:scheduler_history:${entryId}`;
}

/**
 * The keys of a queue: name in scripts, and what follows the prefix of the queue. A name that ends in `Prefix` is the beginning of
 * keys, a name that ends in `Channel` is a channel.
 */
export const QUEUE_KEYS = {
  /** HASHes of `msg`, `state` and other fields of a task; the id follows. */
  taskPrefix: ['TASK', 't:'],
  /** ZSETs of ids, scored by when they were added; the name of the group follows. */
  groupPrefix: ['GROUP', 'g:'],
  /** STRINGs that expire, each the id of the task that holds a unique lock; see task-identity.ts. */
  lockPrefix: ['LOCK', LOCK_PREFIX],
  /** LIST of ids: added on the left, taken from the right. */
  pending: ['PENDING', 'pending'],
  /** LIST of ids. */
  active: ['ACTIVE', 'active'],
  /** ZSET of ids, scored by when the lease ends. */
  lease: ['LEASE', 'lease'],
  /** ZSET of ids, scored by when the task is due. */
  scheduled: ['SCHEDULED', 'scheduled'],
  /** ZSET of ids, scored by when the task is due. */
  retry: ['RETRY', 'retry'],
  /** ZSET of ids, scored by when the task was archived. */
  archived: ['ARCHIVED', 'archived'],
  /** ZSET of ids, scored by when the retention ends. */
  completed: ['COMPLETED', 'completed'],
  /** STRING: since when the queue is paused. It is paused if the key exists. */
  paused: ['PAUSED', 'paused'],
  /** SET of the groups that have tasks; see `dropGroup` in script.ts. */
  groups: ['GROUPS', 'groups'],
  /** ZSET of {@link QueueKeys.aggregationSet}, scored by when its tasks return to the group. */
  aggregationSets: ['SETS', 'aggregation_sets'],
  /** STRING, a number: all runs, including failed ones. */
  processed: ['PROCESSED', 'processed'],
  /** STRING, a number: all failed runs. */
  failed: ['FAILED', 'failed'],
  /** Ours. SETs that expire: ids of the scheduled tasks of a group; the name of the group follows. See `dropGroup` in script.ts. */
  laterPrefix: ['LATER', 'x:later:'],
  /** Ours. STRING, a number: the epoch of the latest lease. */
  epoch: ['EPOCH', 'x:epoch'],
  /** Ours. HASH: the key of a schedule entry and its latest tick that was added, in milliseconds. */
  ticks: ['TICKS', 'x:ticks'],
  /** Ours. HASH: the limits of the queue, and when the bucket of its rate is full; see `readLimits` in flow.ts. */
  limits: ['LIMITS', 'x:limits'],
  /** Ours. STRING, a number: the pending tasks that have a key. A queue that has it has had tasks with a key. */
  waiting: ['WAITING', 'x:waiting'],
  /** Ours. HASH: a key that has pending tasks, and the id of the first one; '' and '' if tasks without key have a turn. See flow.ts. */
  firsts: ['FIRSTS', 'x:first'],
  /** Ours. LISTs of ids: the pending tasks behind the first one of a key, in their order; the key follows. */
  nextPrefix: ['NEXT', 'x:next:'],
  /** Ours. LIST of the keys of pending tasks that may run, in their turns. */
  ring: ['RING', 'x:ring'],
  /** Ours. ZSET of the keys of pending tasks that a limit of their key holds back, scored by when a token comes, in milliseconds; or +inf. */
  parked: ['PARKED', 'x:parked'],
  /** Ours. ZSET, all with score 0: the active tasks that have a key, as `-…LENGTH:KEY:ID`, if keys have a limit of them. */
  runs: ['RUNS', 'x:run'],
  /** Ours. ZSET of keys, scored by when the buckets of their rate are full, in milliseconds. */
  rates: ['RATES', 'x:rates'],
  /** Ours. A task is pending, or a group has grown; see notifications.ts. */
  workChannel: ['WORK', 'x:work'],
  /** Ours. Tasks were completed, archived or removed. */
  settledChannel: ['SETTLED', 'x:settled'],
  /** Ours. The progress of a run has changed. */
  progressChannel: ['PROGRESS', 'x:progress'],
} as const;

type KeysByName = { readonly [Name in keyof typeof QUEUE_KEYS]: string };

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type -- the constructor sets every key
export interface QueueKeys extends KeysByName {}

/** The keys of one queue. */
export class QueueKeys {
  /** Beginning of every key of the queue. */
  readonly prefix: string;

  /** @throws TypeError - the name is not a valid queue name. */
  constructor(queue: string) {
    requireExistingQueueName('queue', queue);
    this.prefix = queuePrefixOf(queue);
    const keys = Object.entries(QUEUE_KEYS).map(([name, [, rest]]) => [name, this.prefix + rest]);
    Object.assign(this, Object.fromEntries(keys));
  }

  task(id: string): string {
    return this.taskPrefix + id;
  }

  group(group: string): string {
    return this.groupPrefix + group;
  }

  /** ZSET of ids, with the scores of the group. */
  aggregationSet(group: string, setId: string): string {
    return `${this.groupPrefix}${group}:${setId}`;
  }

  /** STRING that expires, a number: the runs of a UTC day, including failed ones. */
  processedOn(wallMs: number): string {
    return `${this.processed}:${utcDay(wallMs)}`;
  }

  /** STRING that expires, a number: the failed runs of a UTC day. */
  failedOn(wallMs: number): string {
    return `${this.failed}:${utcDay(wallMs)}`;
  }
}

/** Returns the key of the group of a set, found as in asynq: the id of a set has no colon. */
export function groupKeyOfSet(setKey: string): string {
  return setKey.slice(0, setKey.lastIndexOf(':'));
}
