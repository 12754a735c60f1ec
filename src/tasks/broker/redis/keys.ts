import { utcDay } from '../../../core/units.ts';
import { requireExistingQueueName } from '../../require-text.ts';

/*
 * Every key of asynq, and the keys and channels that we add, whose names contain `x:`. This is the only file that builds keys, except
 * for the scripts: a script may build keys of a queue from a prefix that it is given. asynq computes the key of a unique lock in the
 * client and writes it into the message, so unique-key.ts does, too.
 *
 * The conventions of the scripts:
 *
 *   - KEYS are whole keys, or the prefix of a queue in scripts that run often, which need many keys: less goes over the wire.
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

/** The keys of a queue. Those without a parameter are built once. */
export class QueueKeys {
  /** Beginning of every key of the queue. */
  readonly prefix: string;
  /** Beginning of {@link QueueKeys.task}. */
  readonly taskPrefix: string;
  /** Beginning of {@link QueueKeys.group}. */
  readonly groupPrefix: string;
  /** LIST of ids: added on the left, taken from the right. */
  readonly pending: string;
  /** LIST of ids. */
  readonly active: string;
  /** ZSET of ids, scored by when the lease ends. */
  readonly lease: string;
  /** ZSET of ids, scored by when the task is due. */
  readonly scheduled: string;
  /** ZSET of ids, scored by when the task is due. */
  readonly retry: string;
  /** ZSET of ids, scored by when the task was archived. */
  readonly archived: string;
  /** ZSET of ids, scored by when the retention ends. */
  readonly completed: string;
  /** STRING: since when the queue is paused. It is paused if the key exists. */
  readonly paused: string;
  /** SET of the groups that have tasks; see GROUP_NAMES in lua.ts. */
  readonly groups: string;
  /** ZSET of {@link QueueKeys.aggregationSet}, scored by when its tasks return to the group. */
  readonly aggregationSets: string;
  /** STRING, a number: all runs, including failed ones. */
  readonly processed: string;
  /** STRING, a number: all failed runs. */
  readonly failed: string;
  /** Ours. STRING, a number: the epoch of the latest lease. */
  readonly epoch: string;
  /** Ours. HASH: the key of a schedule entry and its latest tick that was added, in milliseconds. */
  readonly ticks: string;
  /** Ours. Channel: a task is pending, or a group has grown; see notifications.ts. */
  readonly workChannel: string;
  /** Ours. Channel: tasks were completed, archived or removed. */
  readonly settledChannel: string;
  /** Ours. Channel: the progress of a run has changed. */
  readonly progressChannel: string;

  /** @throws TypeError - the name is not a valid queue name. */
  constructor(queue: string) {
    requireExistingQueueName('queue', queue);
    this.prefix = `asynq:{${queue}}:`;
    this.taskPrefix = `${this.prefix}t:`;
    this.groupPrefix = `${this.prefix}g:`;
    this.pending = `${this.prefix}pending`;
    this.active = `${this.prefix}active`;
    this.lease = `${this.prefix}lease`;
    this.scheduled = `${this.prefix}scheduled`;
    this.retry = `${this.prefix}retry`;
    this.archived = `${this.prefix}archived`;
    this.completed = `${this.prefix}completed`;
    this.paused = `${this.prefix}paused`;
    this.groups = `${this.prefix}groups`;
    this.aggregationSets = `${this.prefix}aggregation_sets`;
    this.processed = `${this.prefix}processed`;
    this.failed = `${this.prefix}failed`;
    this.epoch = `${this.prefix}x:epoch`;
    this.ticks = `${this.prefix}x:ticks`;
    this.workChannel = `${this.prefix}x:work`;
    this.settledChannel = `${this.prefix}x:settled`;
    this.progressChannel = `${this.prefix}x:progress`;
  }

  /** HASH of `msg`, `state` and other fields of a task. */
  task(id: string): string {
    return this.taskPrefix + id;
  }

  /** ZSET of ids, scored by when they were added. */
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

/** The key of the group of a set, found as in asynq: the id of a set has no colon. */
export function groupKeyOfSet(setKey: string): string {
  return setKey.slice(0, setKey.lastIndexOf(':'));
}
