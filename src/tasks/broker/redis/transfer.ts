import { NANOS_PER_MS } from '../../../core/units.ts';
import { EVENTS_KEPT, HISTORY_DAYS, HISTORY_KEPT_MS, limitsOf, MARK_KEPT_MS } from '../broker-settings.ts';
import { TASK_STATES, type TaskState } from '../../task-state.ts';
import { encodeTaskMessage } from '../../wire/message-codec.ts';
import { TASKS_PER_PIECE, type Piece, type Transfer, type WholeQueue, type WholeTask } from '../transfer.ts';
import { ADD_TASK } from './add-task.ts';
import { queueNames, readDays } from './inspection.ts';
import { schedulerHistoryKey } from './keys.ts';
import { readLimits, storeLimits } from './limits.ts';
import { MEMBERS } from './members.ts';
import { readRows } from './read-tasks.ts';
import type { RedisAccess } from './redis-access.ts';
import {
  bytesOf,
  messageFor,
  msOfSeconds,
  nanosOf,
  numberOf,
  secondsDown,
  secondsUp,
  textOf,
} from './replies.ts';
import { MOST_BYTES, Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { keysWithPrefix } from './task-keys.ts';

/**
 * Adds tasks as they are, except those whose id is taken. A lock that another task holds stays as it is.
 *
 * KEYS      those of ADD_TASK
 * ARGV[1]   now, in milliseconds
 * ARGV[2…]  per task: id, msg, state, score or '', since when it is pending in nanoseconds or '', group or '', lock or '', seconds
 *           until the lock expires, recoveries, progress or '', 1 if it has a result or '', result, key or ''
 *
 * Returns the number of tasks that were added.
 */
export const WRITE_WHOLE = new Script(`${ADD_TASK}
local ZSETS, SIZE = { retry = RETRY, archived = ARCHIVED, completed = COMPLETED }, 13
need('zset', RETRY, ARCHIVED, COMPLETED)
for i = 2, #ARGV, SIZE do
  local state = ARGV[i + 2]
  local isGrouped = state == 'scheduled' or state == 'aggregating'
  local wrong = damage(state == 'scheduled' and ARGV[i + 3] or '', isGrouped and ARGV[i + 5] or '')
  if wrong then return wrong end
end
local function restore(id, msg, state, score, since, group, lock, ttl, recoveries, progress, hasResult, result, key)
  if redis.call('EXISTS', TASK .. id) == 1 then return end
  if lock ~= '' and redis.call('EXISTS', lock) == 1 then lock = '' end
  local more = {}
  local function field(name, value)
    more[#more + 1] = name
    more[#more + 1] = value
  end
  if since ~= '' then field('pending_since', since) end
  if recoveries ~= '0' then field('x:recoveries', recoveries) end
  if progress ~= '' then field('x:progress', progress) end
  if hasResult == '1' then field('result', result) end
  if state == 'scheduled' then schedule(id, score, group)
  elseif state == 'aggregating' then
    redis.call('ZADD', GROUP .. group, score, id)
    redis.call('SADD', GROUPS, group)
    grown[group] = true
  elseif ZSETS[state] then redis.call('ZADD', ZSETS[state], score, id) end
  if state == 'pending' then enter(id, key, false) end
  mark(key)
  if key ~= '' then field('x:key', key) end
  write(id, msg, state, group, lock, ttl, unpack(more))
end
for i = 2, #ARGV, SIZE do restore(unpack(ARGV, i, i + SIZE - 1)) end
finish()
return added
`);

/**
 * Registers a queue, and raises its counts to those that are given.
 *
 * KEYS[2]   `QUEUES`; see RedisAccess.runToEnqueue
 * ARGV[1]   since when it is paused, or ''
 * ARGV[2]   the epoch of the latest lease
 * ARGV[3]   all runs
 * ARGV[4]   all failed runs
 * ARGV[5]   milliseconds that marks of ticks are kept
 * ARGV[6]   number of days
 * ARGV[7…]  per day: the day as in the keys of counts, runs, failed runs, when they expire
 * then      per tick: key of the schedule entry, the tick in milliseconds
 */
export const WRITE_QUEUE = new Script(`
local FIRST = 7
local firstTick = FIRST + 4 * ARGV[6]
if QUEUES then need('set', QUEUES) end
need('string', PAUSED, EPOCH, PROCESSED, FAILED)
need('hash', TICKS)
for i = FIRST, firstTick - 1, 4 do need('string', PROCESSED .. ':' .. ARGV[i], FAILED .. ':' .. ARGV[i]) end
local function raise(key, value, expireAt)
  if tonumber(value) <= (tonumber(redis.call('GET', key) or '') or 0) then return end
  redis.call('SET', key, value)
  if expireAt then redis.call('EXPIREAT', key, expireAt) end
end
if QUEUES then redis.call('SADD', QUEUES, queueName()) end
if ARGV[1] ~= '' then redis.call('SETNX', PAUSED, ARGV[1]) end
raise(EPOCH, ARGV[2])
raise(PROCESSED, ARGV[3])
raise(FAILED, ARGV[4])
for i = FIRST, firstTick - 1, 4 do
  raise(PROCESSED .. ':' .. ARGV[i], ARGV[i + 1], ARGV[i + 3])
  raise(FAILED .. ':' .. ARGV[i], ARGV[i + 2], ARGV[i + 3])
end
for i = firstTick, #ARGV, 2 do
  local last = tonumber(redis.call('HGET', TICKS, ARGV[i]) or '')
  if not last or last < tonumber(ARGV[i + 1]) then redis.call('HSET', TICKS, ARGV[i], ARGV[i + 1]) end
end
redis.call('PEXPIRE', TICKS, ARGV[5])
`);

/** Reads and writes everything of a Redis broker as it is. */
export class RedisTransfer implements Transfer {
  readonly #redis: RedisAccess;

  constructor(redis: RedisAccess) {
    this.#redis = redis;
  }

  async *read(): AsyncGenerator<Piece> {
    for (const queue of await queueNames(this.#redis)) {
      yield { kind: 'queue', queue: await this.#readQueue(queue) };
      // In this order: what was active comes first in the pending list.
      for (const state of TASK_STATES) yield* this.#readState(queue, state);
    }
    const prefix = schedulerHistoryKey('');
    for await (const keys of keysWithPrefix(this.#redis, prefix)) {
      for (const entryId of keys.map((key) => key.slice(prefix.length))) {
        const newest = await MEMBERS.enqueueEvents(this.#redis, entryId, { page: 1, size: EVENTS_KEPT });
        yield { kind: 'events', entryId, events: newest.reverse() };
      }
    }
  }

  async write(piece: Piece): Promise<number> {
    if (piece.kind === 'tasks') return this.#writeTasks(piece.queue, piece.tasks);
    if (piece.kind === 'queue') await this.#writeQueue(piece.queue);
    // An event that is there already is written again, as it is.
    else
      for (const event of piece.events) await MEMBERS.recordEnqueueEvent(this.#redis, piece.entryId, event);
    return 0;
  }

  async *#readState(queue: string, state: TaskState): AsyncGenerator<Piece> {
    for await (const rows of readRows(this.#redis, queue, state, TASKS_PER_PIECE)) {
      const tasks = rows.map((fields) => this.#whole(queue, state, fields));
      if (tasks.length > 0) yield { kind: 'tasks', queue, tasks };
    }
  }

  #whole(queue: string, state: TaskState, fields: readonly ScriptReply[]): WholeTask {
    const [id, msg, result, progress, at, recoveries, lockMs] = fields;
    const nowMs = this.#redis.wallNowMs;
    const isActive = state === 'active';
    const isPending = isActive || state === 'pending';
    const sinceMs = Math.round(numberOf(at) / NANOS_PER_MS) || nowMs;
    return {
      message: messageFor(queue, textOf(id), msg),
      state: isActive ? 'pending' : state,
      atMs: isActive ? nowMs : isPending ? sinceMs : msOfSeconds(numberOf(at)),
      recoveries: numberOf(recoveries) + (isActive ? 1 : 0),
      lockEndsMs: numberOf(lockMs) > 0 ? nowMs + numberOf(lockMs) : 0,
      result: bytesOf(result),
      progress: Buffer.isBuffer(progress) ? textOf(progress) : undefined,
    };
  }

  async #writeTasks(queue: string, tasks: readonly WholeTask[]): Promise<number> {
    let added = 0;
    let args: ScriptArgument[] = [];
    let bytes = 0;
    const write = async (): Promise<void> => {
      const all = [this.#redis.wallNowDigits, ...args];
      added += numberOf(await this.#redis.runToEnqueue(queue, WRITE_WHOLE, all));
      args = [];
      bytes = 0;
    };
    for (const task of tasks) {
      args.push(...this.#argumentsOf(task));
      bytes += task.message.payload.length + (task.result?.length ?? 0);
      if (bytes >= MOST_BYTES) await write();
    }
    if (args.length > 0) await write();
    return added;
  }

  /** Returns the arguments of WRITE_WHOLE for a task. */
  #argumentsOf(task: WholeTask): ScriptArgument[] {
    const { message, state, atMs, recoveries, lockEndsMs, result, progress = '' } = task;
    const lockMs = lockEndsMs - this.#redis.wallNowMs;
    const isPending = state === 'pending';
    const isPast = state === 'archived' || state === 'aggregating';
    return [
      ...[message.id, encodeTaskMessage(message), state],
      ...(isPending ? ['', nanosOf(atMs)] : [isPast ? secondsDown(atMs) : secondsUp(atMs), '']),
      ...[message.group, lockMs > 0 ? message.uniqueKey : '', Math.max(secondsUp(lockMs), 1), recoveries],
      ...[progress, result === undefined ? '' : 1, Buffer.from(result ?? ''), message.key],
    ];
  }

  async #readQueue(name: string): Promise<WholeQueue> {
    const keys = this.#redis.keysOf(name);
    const days = (await readDays(this.#redis, name, HISTORY_DAYS)).reverse();
    const [counts, ticks] = await this.#redis.send((client) =>
      Promise.all([
        client.mget(keys.paused, keys.epoch, keys.processed, keys.failed),
        client.hgetall(keys.ticks),
      ]),
    );
    const [paused, epoch, processedTotal, failedTotal] = counts;
    return {
      ...{ name, isPaused: paused !== null, epoch: Number(epoch ?? 0) },
      limits: await readLimits(this.#redis, name),
      ticks: Object.entries(ticks).map(([entryKey, atMs]) => [entryKey, Number(atMs)] as const),
      days: days
        .filter(({ processed, failed }) => processed > 0 || failed > 0)
        .map(({ date, processed, failed }) => [date, processed, failed] as const),
      ...{ processedTotal: Number(processedTotal ?? 0), failedTotal: Number(failedTotal ?? 0) },
    };
  }

  async #writeQueue(queue: WholeQueue): Promise<void> {
    const { name, isPaused, limits, epoch, ticks, days, processedTotal, failedTotal } = queue;
    const nowMs = this.#redis.wallNowMs;
    const expiryOf = (date: string): number => secondsUp(Date.parse(date) + HISTORY_KEPT_MS);
    const kept = days.filter(([date]) => expiryOf(date) > secondsUp(nowMs));
    await this.#redis.runToEnqueue(name, WRITE_QUEUE, [
      ...[isPaused ? secondsDown(nowMs) : '', epoch, processedTotal, failedTotal, MARK_KEPT_MS, kept.length],
      ...kept.flatMap((day) => [...day, expiryOf(day[0])]),
      ...ticks.flat(),
    ]);
    if (limits !== undefined) await storeLimits(this.#redis, name, limitsOf(limits), true);
  }
}
