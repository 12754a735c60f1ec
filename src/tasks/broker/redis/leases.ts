import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { requireDuration } from '../../task-options.ts';
import type { TaskMessage } from '../../task-message.ts';
import { encodeTaskMessage } from '../../wire/task-message-codec.ts';
import { leaseLost } from '../broker-errors.ts';
import type { LeasedTask, TaskFailure } from '../broker.ts';
import { Coalescer } from './coalescer.ts';
import { extendLeases } from './extend-leases.ts';
import { utcDay, type QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { nanosOf, secondsDown, secondsUp } from './redis-time.ts';
import { listOf, messageIfOf, numberOf, textOf } from './replies.ts';
import type { Script, ScriptArgument, ScriptReply } from './script.ts';
import { ARCHIVE_UNREADABLE } from './scripts/archive-unreadable.ts';
import { ARCHIVE } from './scripts/archive.ts';
import { COMPLETE } from './scripts/complete.ts';
import { DEQUEUE } from './scripts/dequeue.ts';
import { DISCARD } from './scripts/discard.ts';
import { RECOVER } from './scripts/recover.ts';
import { RELEASE } from './scripts/release.ts';
import { RETRY } from './scripts/retry.ts';
import { WRITE_FIELD } from './scripts/write-field.ts';

/** What one script moves at most: some milliseconds in which Redis does nothing else. */
const MAX_PER_SCRIPT = 1_000;

/** What one script answers, and what is taken at once, at most, in bytes but for the last task: it has to arrive in time. */
const MAX_REPLY_BYTES = 8_388_608;
const MAX_TAKEN_BYTES = 8 * MAX_REPLY_BYTES;

/** asynq's: a day's count is kept for that long. */
const DAY_COUNT_MS = 90 * 86_400_000;

/** Tasks that are processed: who has them, and how it ends. */
export class Leases {
  readonly #access: RedisAccess;
  readonly #done: Coalescer<LeasedTask, number>;

  constructor(access: RedisAccess) {
    this.#access = access;
    this.#done = new Coalescer({
      run: (queue, tasks) => this.#completeAll(queue, tasks),
      bytesOf: ({ message }) => (message.retentionMs > 0 ? message.payload.length : 0),
    });
  }

  async dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    requireIntegerAtLeast('limit', 0, limit);
    requireDuration('leaseMs', leaseMs);
    const { prefix } = this.#access.keysOf(queue);
    return this.#takeSome(queue, limit, (count) => {
      const untilS = secondsUp(this.#access.wallNowMs + leaseMs);
      return this.#access.run(DEQUEUE, [prefix], [count, untilS, MAX_REPLY_BYTES]);
    });
  }

  async complete(task: LeasedTask): Promise<void> {
    if ((await this.#done.ask(task.message.queue, task)) !== 1) throw leaseLost(task);
  }

  async retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void> {
    requireDuration('atMs', atMs);
    const { message, epoch } = task;
    const { keys, expiresS } = this.#failing(message, 'retry');
    const retried = message.retried + (failure.isFailure ? 1 : 0);
    await this.#hold(task, RETRY, keys, [
      message.id,
      epoch,
      encoded({ ...message, retried, lastError: failure.error, lastFailedAtMs: this.#access.wallNowMs }),
      secondsUp(atMs),
      flag(failure.isFailure),
      flag(failure.isRecovery),
      expiresS,
    ]);
  }

  async archive(task: LeasedTask, failure: TaskFailure): Promise<void> {
    const { message, epoch } = task;
    const { keys, expiresS } = this.#failing(message, 'archived');
    const nowMs = this.#access.wallNowMs;
    const { taskPrefix, settledChannel } = this.#access.keysOf(message.queue);
    const { maxArchived, archiveRetentionMs } = this.#access.options;
    await this.#hold(task, ARCHIVE, keys, [
      message.id,
      epoch,
      encoded({ ...message, lastError: failure.error, lastFailedAtMs: nowMs }),
      secondsUp(nowMs),
      flag(failure.isRecovery),
      expiresS,
      message.uniqueKey,
      taskPrefix,
      secondsDown(nowMs - archiveRetentionMs),
      maxArchived,
      settledChannel,
    ]);
  }

  async release(task: LeasedTask): Promise<void> {
    const { id, queue } = task.message;
    const keys = this.#access.keysOf(queue);
    await this.#hold(
      task,
      RELEASE,
      [keys.task(id), keys.active, keys.lease, keys.pending],
      [id, task.epoch, nanosOf(this.#access.wallNowMs), keys.workChannel],
    );
  }

  async discard(task: LeasedTask): Promise<void> {
    const { id, queue, uniqueKey } = task.message;
    const keys = this.#access.keysOf(queue);
    await this.#hold(
      task,
      DISCARD,
      [keys.task(id), keys.active, keys.lease],
      [id, task.epoch, uniqueKey, keys.settledChannel],
    );
  }

  async extend(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]> {
    requireDuration('leaseMs', leaseMs);
    const lost = await Promise.all(
      [...byQueue(tasks)].map(([queue, some]) => this.#extendSome(queue, some, leaseMs)),
    );
    return lost.flat();
  }

  writeResult(task: LeasedTask, result: Uint8Array): Promise<void> {
    return this.#writeField(task, 'result', Buffer.from(result), '');
  }

  writeProgress(task: LeasedTask, progress: string): Promise<void> {
    const { progressChannel } = this.#access.keysOf(task.message.queue);
    return this.#writeField(task, 'x:progress', progress, progressChannel);
  }

  async recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]> {
    requireDuration('graceMs', graceMs);
    requireDuration('leaseMs', leaseMs);
    const recovered: LeasedTask[] = [];
    for (const queue of new Set(queues)) {
      const { active, lease, epoch, taskPrefix } = this.#access.keysOf(queue);
      const some = await this.#takeSome(queue, MAX_PER_SCRIPT, (count) => {
        const nowMs = this.#access.wallNowMs;
        const [endedS, untilS] = [secondsDown(nowMs - graceMs), secondsUp(nowMs + leaseMs)];
        const args = [endedS, untilS, taskPrefix, count, MAX_REPLY_BYTES];
        return this.#access.run(RECOVER, [active, lease, epoch], args);
      });
      recovered.push(...some);
    }
    return recovered;
  }

  /** Script by script, until it is enough, or there is no more. What is taken is ours, whatever becomes of the next one. */
  async #takeSome(
    queue: string,
    limit: number,
    take: (count: number) => Promise<ScriptReply>,
  ): Promise<LeasedTask[]> {
    const taken: LeasedTask[] = [];
    let bytes = 0;
    for (let left = limit; left > 0 && bytes < MAX_TAKEN_BYTES;) {
      const count = Math.min(left, MAX_PER_SCRIPT);
      let reply: ScriptReply[];
      try {
        reply = listOf(await take(count));
        await this.#read(queue, reply, taken);
      } catch (error) {
        if (taken.length === 0) throw error;
        break;
      }
      if (numberOf(reply[1]) === 0) break;
      left -= Math.floor(reply.length / 3);
      bytes += bytesIn(reply);
    }
    return taken;
  }

  /**
   * A message that cannot be read, or is that of another task, is archived as it is: what ends a run would not find the task
   * that it was leased as, which would be recovered for ever.
   */
  async #read(queue: string, reply: readonly ScriptReply[], into: LeasedTask[]): Promise<void> {
    const first = numberOf(reply[0]);
    const unreadable: Promise<unknown>[] = [];
    for (let at = 2; at < reply.length; at += 3) {
      const [id, epoch] = [textOf(reply[at]), first + (at - 2) / 3];
      const message = messageIfOf(queue, id, reply[at + 1]);
      if (message === undefined) unreadable.push(this.#archiveUnreadable(queue, id, epoch));
      else into.push({ message, epoch, recoveries: numberOf(reply[at + 2]) });
    }
    await Promise.all(unreadable);
  }

  async #archiveUnreadable(queue: string, id: string, epoch: number): Promise<void> {
    const keys = this.#access.keysOf(queue);
    const { active, lease, archived, settledChannel } = keys;
    const args = [id, epoch, secondsUp(this.#access.wallNowMs), settledChannel];
    await this.#access.run(ARCHIVE_UNREADABLE, [keys.task(id), active, lease, archived], args);
  }

  async #completeAll(queue: string, tasks: readonly LeasedTask[]): Promise<readonly number[]> {
    const nowMs = this.#access.wallNowMs;
    const args: ScriptArgument[] = [utcDay(nowMs), this.#expiresS(nowMs)];
    for (const { message, epoch } of tasks) {
      args.push(message.id, epoch, message.uniqueKey);
      if (message.retentionMs === 0) args.push('', '');
      else args.push(secondsUp(nowMs + message.retentionMs), encoded({ ...message, completedAtMs: nowMs }));
    }
    return listOf(await this.#access.run(COMPLETE, [this.#access.keysOf(queue).prefix], args)).map(numberOf);
  }

  async #extendSome(queue: string, tasks: readonly LeasedTask[], leaseMs: number): Promise<LeasedTask[]> {
    const keys = this.#access.keysOf(queue);
    const lost: LeasedTask[] = [];
    for (let first = 0; first < tasks.length; first += MAX_PER_SCRIPT) {
      const some = tasks.slice(first, first + MAX_PER_SCRIPT);
      const ids = some.map((task) => ({ id: task.message.id, epoch: task.epoch, task }));
      const gone = await extendLeases(this.#access, keys, ids, this.#access.wallNowMs + leaseMs);
      lost.push(...gone.map(({ task }) => task));
    }
    return lost;
  }

  #writeField(task: LeasedTask, field: string, value: ScriptArgument, channel: string): Promise<void> {
    const { id, queue } = task.message;
    const keys = this.#access.keysOf(queue);
    return this.#hold(
      task,
      WRITE_FIELD,
      [keys.task(id), keys.lease],
      [id, task.epoch, field, value, channel],
    );
  }

  /** The keys of a task that has failed; `place` is where it goes. */
  #failing({ queue, id }: TaskMessage, place: 'retry' | 'archived'): { keys: string[]; expiresS: number } {
    const keys: QueueKeys = this.#access.keysOf(queue);
    const nowMs = this.#access.wallNowMs;
    return {
      keys: [
        keys.task(id),
        keys.active,
        keys.lease,
        keys[place],
        keys.processed,
        keys.processedOn(nowMs),
        keys.failed,
        keys.failedOn(nowMs),
      ],
      expiresS: this.#expiresS(nowMs),
    };
  }

  #expiresS(nowMs: number): number {
    return secondsUp(nowMs + DAY_COUNT_MS);
  }

  /** Runs a script that answers whether the lease is the present one. */
  async #hold(
    task: LeasedTask,
    script: Script,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<void> {
    if ((await this.#access.run(script, keys, args)) !== 1) throw leaseLost(task);
  }
}

function encoded(message: TaskMessage): Buffer {
  const { buffer, byteOffset, byteLength } = encodeTaskMessage(message);
  return Buffer.from(buffer, byteOffset, byteLength);
}

function bytesIn(reply: readonly ScriptReply[]): number {
  return reply.reduce<number>((sum, each) => sum + (Buffer.isBuffer(each) ? each.length : 0), 0);
}

function flag(is: boolean | undefined): ScriptArgument {
  return is === true ? 1 : 0;
}

function byQueue(tasks: readonly LeasedTask[]): Map<string, LeasedTask[]> {
  const queues = new Map<string, LeasedTask[]>();
  for (const task of tasks) {
    const { queue } = task.message;
    const some = queues.get(queue);
    if (some === undefined) queues.set(queue, [task]);
    else some.push(task);
  }
  return queues;
}
