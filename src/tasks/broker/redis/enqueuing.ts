import { requireQueueName } from '../../require-text.ts';
import { requireDuration } from '../../task-options.ts';
import { encodeTaskMessage } from '../../wire/task-message-codec.ts';
import { taskDuplicate, taskIdConflict, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import type { NewTask, TaskRecord, Tick } from '../broker.ts';
import { Coalescer } from './coalescer.ts';
import { QUEUES_KEY } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { msOfSeconds, secondsUp } from './redis-time.ts';
import { textOf } from './replies.ts';
import { scriptError, type ScriptArgument, type ScriptReply } from './script.ts';
import { ENQUEUE_TICK } from './scripts/enqueue-tick.ts';
import { ENQUEUE } from './scripts/enqueue.ts';

/** What scripts/add-task.ts says of a task: 0 is a conflict. */
const STATES = [undefined, 'pending', 'scheduled', 'aggregating'] as const;

/** How long a queue counts as registered, in milliseconds, and how many are remembered. */
const REGISTERED_MS = 5_000;
const MAX_REGISTERED = 1_000;

/** A task as the scripts take it. */
interface TaskArguments {
  readonly task: NewTask;
  /** When it is for, in seconds; 0 for now. */
  readonly score: number;
  readonly words: readonly ScriptArgument[];
}

/** Tasks come in. */
export class Enqueuing {
  readonly #access: RedisAccess;
  readonly #tasks: Coalescer<TaskArguments, ScriptReply>;
  readonly #registeredUntilMs = new Map<string, number>();

  constructor(access: RedisAccess) {
    this.#access = access;
    this.#tasks = new Coalescer({
      run: (queue, tasks) => this.#enqueueAll(queue, tasks),
      bytesOf: ({ task }) => task.message.payload.length,
    });
  }

  async enqueue(task: NewTask): Promise<TaskRecord> {
    const words = argumentsOf(task, this.#access.wallNowMs);
    return this.#record(words, await this.#tasks.ask(task.message.queue, words));
  }

  enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return Promise.allSettled(tasks.map((task) => this.enqueue(task)));
  }

  async enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined> {
    const { entryKey, atMs } = tick;
    requireDuration('tick.atMs', atMs);
    const { queue } = task.message;
    const words = argumentsOf(task, this.#access.wallNowMs);
    const reply = await this.#access.run(ENQUEUE_TICK, await this.keysFor(queue), [
      this.#access.wallNowDigits,
      ...words.words,
      entryKey,
      atMs,
      this.#access.virtualNowDigits,
      MOST_AHEAD_MS,
      MOST_SET_BACK_MS,
      MARK_KEPT_MS,
    ]);
    if (reply === -1) throw tickEarly(tick);
    return reply === null ? undefined : this.#record(words, reply);
  }

  /** The keys of add-task.ts. */
  async keysFor(queue: string): Promise<string[]> {
    const { prefix } = this.#access.keysOf(queue);
    if (!this.#access.isCluster) return [prefix, QUEUES_KEY];
    await this.#register(queue);
    return [prefix];
  }

  /**
   * In a cluster the set of queues is on another node. That a queue is in it is taken for granted for a while, not for ever:
   * somebody may remove it (B12).
   */
  async #register(queue: string): Promise<void> {
    const nowMs = this.#access.clock.now();
    if ((this.#registeredUntilMs.get(queue) ?? 0) > nowMs) return;
    await this.#access.ask((client) => client.sadd(QUEUES_KEY, queue));
    if (this.#registeredUntilMs.size >= MAX_REGISTERED) this.#registeredUntilMs.clear();
    this.#registeredUntilMs.set(queue, nowMs + REGISTERED_MS);
  }

  /** It is registered again with its next task. */
  forget(queue: string): void {
    this.#registeredUntilMs.delete(queue);
  }

  async #enqueueAll(queue: string, tasks: readonly TaskArguments[]): Promise<readonly ScriptReply[]> {
    const args: ScriptArgument[] = [this.#access.wallNowDigits];
    for (const { words } of tasks) args.push(...words);
    return (await this.#access.run(ENQUEUE, await this.keysFor(queue), args)) as ScriptReply[];
  }

  #record(words: TaskArguments, reply: ScriptReply): TaskRecord {
    return recordOfNew(words, reply, this.#access.wallNowMs);
  }
}

/**
 * @throws TypeError or RangeError - the name of its queue, or one of its times, is not valid.
 * @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be kept.
 */
export function argumentsOf(task: NewTask, wallNowMs: number): TaskArguments {
  const { message, processAtMs, uniqueTtlMs } = task;
  requireQueueName('task.message.queue', message.queue);
  requireDuration('processAtMs', processAtMs);
  requireDuration('uniqueTtlMs', uniqueTtlMs);
  requireDuration('message.retentionMs', message.retentionMs);
  const isLater = processAtMs > wallNowMs;
  const score = isLater ? secondsUp(processAtMs) : 0;
  const lock = uniqueTtlMs > 0 ? message.uniqueKey : '';
  const lockMs = uniqueTtlMs + (isLater ? processAtMs - wallNowMs : 0);
  const msg = encodeTaskMessage(message);
  return {
    task,
    score,
    words: [
      message.id,
      Buffer.from(msg.buffer, msg.byteOffset, msg.byteLength),
      isLater ? score : '',
      message.group,
      lock,
      lock === '' ? '' : secondsUp(lockMs),
    ],
  };
}

/** @throws EscapementError `ERR_TASK_ID_CONFLICT`, `ERR_TASK_DUPLICATE` or `ERR_WIRE_MESSAGE` - it was refused. */
export function recordOfNew(
  { task, score }: TaskArguments,
  reply: ScriptReply,
  wallNowMs: number,
): TaskRecord {
  const { queue, id } = task.message;
  if (reply instanceof Error) throw scriptError(reply);
  if (typeof reply !== 'number') throw taskDuplicate(queue, textOf(reply));
  const state = STATES[reply];
  if (state === undefined) throw taskIdConflict(queue, id);
  return {
    message: task.message,
    state,
    nextProcessAtMs: state === 'pending' ? wallNowMs : state === 'scheduled' ? msOfSeconds(score) : 0,
    result: undefined,
    progress: undefined,
    isOrphaned: false,
  };
}
