import { requireExistingQueueName } from '../../require-text.ts';

/*
 * Every key that asynq has in Redis, and those that we add, with its type. Times in them are Unix seconds, unless it says otherwise.
 *
 * What is between `{` and `}` tells a cluster where a key lives: all keys of one queue are together, so a script may touch
 * all of them. Text of users goes in as it is: in queue names, groups and ids nothing is escaped. Keys of two queues cannot meet,
 * because names with `}:` are refused, nor can those of two tasks. The key of group `a:SETID` would be that of a set of group `a`,
 * whose SETID is a random UUID.
 */

/** SET of the names of all queues: a queue is in it before its first task is. */
export const QUEUES_KEY = 'asynq:queues';

/** ZSET: {@link serverKey} by when it expires. */
export const SERVERS_KEY = 'asynq:servers';

/** ZSET: {@link workersKey} by when it expires. */
export const WORKERS_KEY = 'asynq:workers';

/** ZSET: {@link schedulerKey} by when it expires. */
export const SCHEDULERS_KEY = 'asynq:schedulers';

/** Channel: the id of a task that is to be cancelled, of whatever queue. */
export const CANCEL_CHANNEL = 'asynq:cancel';

/** Ours. Channel: somebody wants a run to stop; JSON, see cancellation.ts. */
export const CANCEL_REQUEST_CHANNEL = 'asynq:x:cancel';

/** Ours. Channel of one who waits for an answer to that. */
export function cancelReplyChannel(id: string): string {
  return `asynq:x:cancel-reply:${id}`;
}

/** STRING that expires: a ServerInfo. */
export function serverKey(host: string, pid: number, serverId: string): string {
  return `asynq:servers:{${host}:${pid}:${serverId}}`;
}

/** HASH that expires: a WorkerInfo by the id of its task. */
export function workersKey(host: string, pid: number, serverId: string): string {
  return `asynq:workers:{${host}:${pid}:${serverId}}`;
}

/** LIST that expires: a SchedulerEntry each, the last one first. */
export function schedulerKey(schedulerId: string): string {
  return `asynq:schedulers:{${schedulerId}}`;
}

/** ZSET: a SchedulerEnqueueEvent by its time, a thousand at most. */
export function schedulerHistoryKey(entryId: string): string {
  return `asynq:scheduler_history:${entryId}`;
}

/** The keys of a queue; those that every task needs are made once. */
export class QueueKeys {
  /** What all of them begin with. */
  readonly prefix: string;
  /** What {@link QueueKeys.task} begins with: scripts make keys from it. */
  readonly taskPrefix: string;
  /** What {@link QueueKeys.group} begins with: scripts make keys from it. */
  readonly groupPrefix: string;
  /** LIST of ids: in on the left, out on the right. */
  readonly pending: string;
  /** LIST of ids. */
  readonly active: string;
  /** ZSET: an id by when its lease ends. */
  readonly lease: string;
  /** ZSET: an id by when it is due. */
  readonly scheduled: string;
  /** ZSET: an id by when it is due. */
  readonly retry: string;
  /** ZSET: an id by when it was archived. */
  readonly archived: string;
  /** ZSET: an id by when its retention is over. */
  readonly completed: string;
  /** STRING: since when it is paused; it is paused if the key is there. */
  readonly paused: string;
  /** SET of the groups that have tasks. */
  readonly groups: string;
  /** ZSET: {@link QueueKeys.aggregationSet} by when its tasks go back. */
  readonly aggregationSets: string;
  /** STRING, a number: runs, with those that failed, ever. */
  readonly processed: string;
  /** STRING, a number: runs that failed, ever. */
  readonly failed: string;
  /** Ours. STRING, a number: the epoch of the latest lease. */
  readonly epoch: string;
  /** Ours. HASH: by the key of a schedule entry the latest tick that was added, in milliseconds. */
  readonly ticks: string;
  /** Ours. Channel: there is something to do; see hints.ts. */
  readonly workChannel: string;
  /** Ours. Channel: tasks are completed, archived or gone. */
  readonly settledChannel: string;
  /** Ours. Channel: a run has said how far it is. */
  readonly progressChannel: string;

  /** @throws TypeError - a queue cannot have that name. */
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

  /** HASH of `msg`, `state` and what else a task has. */
  task(id: string): string {
    return this.taskPrefix + id;
  }

  /** ZSET: an id by when it was added. */
  group(group: string): string {
    return this.groupPrefix + group;
  }

  /** ZSET: as the group had it. */
  aggregationSet(group: string, setId: string): string {
    return `${this.groupPrefix}${group}:${setId}`;
  }

  /** STRING that expires, a number: runs of a UTC day, with those that failed. */
  processedOn(wallMs: number): string {
    return `${this.processed}:${utcDay(wallMs)}`;
  }

  /** STRING that expires, a number: runs of a UTC day that failed. */
  failedOn(wallMs: number): string {
    return `${this.failed}:${utcDay(wallMs)}`;
  }
}

/** The group's key of a set's key, as asynq finds it: an id of a set has no colon. */
export function groupKeyOfSet(setKey: string): string {
  return setKey.slice(0, setKey.lastIndexOf(':'));
}

/** A day, as the counts of days have it. */
export function utcDay(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
