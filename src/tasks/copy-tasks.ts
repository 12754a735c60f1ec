import { EscapementError, wrongType } from '../core/errors.ts';
import { readOptions, type OptionTable } from '../core/options.ts';
import { requireBoolean, requireFunction, requirePath, requireSignal } from '../core/validate.ts';
import type { Broker } from './broker/broker.ts';
import { withOperation } from './broker/broker-errors.ts';
import { TRANSFER, type Piece, type TransferableBroker } from './broker/transfer.ts';
import { countTasks } from './info.ts';
import { DumpReader, DumpWriter } from './task-dump.ts';

/** Options of {@link copyTasks}. */
export interface CopyTasksOptions {
  /** Whether the target may have tasks: they stay as they are, and a copy that was interrupted goes on. @default false */
  readonly merge?: boolean | undefined;
  /** Called after each piece with the number of tasks that were read, and of all tasks of the source. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  /** Ends the copy when it fires: the call rejects with the signal's reason. Copying again with `merge` goes on. */
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS = {
  merge: [requireBoolean, false],
  onProgress: [requireFunction, undefined],
  signal: [requireSignal, undefined],
} satisfies OptionTable<CopyTasksOptions>;

/** What {@link copyTasks} has done. */
export interface CopiedTasks {
  /** Number of queues of the source. */
  readonly queues: number;
  /** Number of tasks of the source. */
  readonly tasks: number;
  /** Number of those that were added to the target: the others were there already. */
  readonly added: number;
}

/** Where tasks are read from. */
interface Source {
  count(): Promise<number>;
  read(): AsyncIterable<Piece>;
}

/** Where tasks are written to. */
interface Target {
  write(piece: Piece): Promise<number>;
  /** Called when everything is written. */
  finish?(): Promise<void>;
  /** Called at the end, also after an error. */
  close?(): Promise<void>;
}

/**
 * Copies everything of a broker, or of a dump, as it is: tasks in every state with their payloads, options, headers, results, progress,
 * retries, errors and unique locks; paused queues, groups, counts, the ticks and the history of schedule entries, names of queues. A
 * queue or a task that is only in the target stays. Redis stores whole seconds: times are rounded up there, so no task is due early.
 *
 * The source does not change, and nothing may use it meanwhile: no server, no client. What was in work when its process died is
 * pending in the copy, at the head of its queue, and counts as recovered, as if the source had been opened again. Schedulers
 * announce themselves, so they are not copied. Start servers of the target after the copy.
 *
 * A copy that was interrupted goes on with `merge`: a task whose id is in the queue of the target stays as it is there, so nothing is
 * doubled. A dump is complete, or it does not exist. O(tasks), some hundreds at a time.
 *
 * @param from - a broker of this package, or the path of a dump.
 * @param to - a broker of this package, or the path of a dump, which must not exist.
 * @throws TypeError - an argument is not valid.
 * @throws EscapementError `ERR_SERVER_STATE` - a server of the source is running. `ERR_TASK_STATE` - a task of the source is active,
 * and its lease lasts. `ERR_QUEUE_NOT_EMPTY` - the target has tasks, or the dump exists; nothing was
 * written. `ERR_WIRE_MESSAGE` - a task cannot be read, or the dump is not valid. `ERR_BROKER_UNAVAILABLE` - a broker could not be
 * reached, or the file of the dump not be read or written; the `cause` is the error of the host.
 * @example
 * ```ts
 * const folder = await EmbeddedBroker.open({ dataPath: 'jobs' });
 * const redis = new RedisBroker({ url: 'redis://localhost:6379' });
 * await copyTasks(folder, redis);
 * ```
 */
export async function copyTasks(
  from: Broker | string,
  to: Broker | string,
  options: CopyTasksOptions = {},
): Promise<CopiedTasks> {
  const { merge, onProgress, signal } = readOptions('copyTasks', options, OPTIONS);
  requirePlace('from', from);
  requirePlace('to', to);
  signal?.throwIfAborted();
  try {
    return await copy(from, to, { merge, onProgress, signal });
  } catch (error) {
    throw withOperation(error, 'copyTasks');
  }
}

async function copy(
  from: TransferableBroker | string,
  to: TransferableBroker | string,
  { merge, onProgress, signal }: CopyTasksOptions,
): Promise<CopiedTasks> {
  const source = typeof from === 'string' ? new DumpReader(from) : await idleSource(from);
  const total = await source.count();
  if (merge !== true && typeof to !== 'string') await requireEmpty(to);
  const target: Target = typeof to === 'string' ? await DumpWriter.create(to, total) : to[TRANSFER]();
  const copied = { queues: 0, tasks: 0, added: 0 };
  try {
    for await (const piece of source.read()) {
      signal?.throwIfAborted();
      copied.added += await target.write(piece);
      if (piece.kind === 'queue') copied.queues++;
      if (piece.kind === 'tasks') copied.tasks += piece.tasks.length;
      onProgress?.(copied.tasks, Math.max(total, copied.tasks));
    }
    await target.finish?.();
  } finally {
    await target.close?.();
  }
  return copied;
}

function requirePlace(argument: string, place: unknown): asserts place is TransferableBroker | string {
  if (typeof place === 'string') requirePath(argument, place);
  else if (typeof place !== 'object' || place === null || !(TRANSFER in place))
    throw wrongType(argument, 'an EmbeddedBroker, a RedisBroker, or the path of a dump', place);
}

/** @throws EscapementError `ERR_SERVER_STATE` or `ERR_TASK_STATE` - a server may be working on its tasks. */
async function idleSource(broker: TransferableBroker): Promise<Source> {
  const [server] = await broker.servers();
  if (server !== undefined) {
    const message = `a server of the source is running: process ${server.pid} on ${server.host}`;
    throw new EscapementError('ERR_SERVER_STATE', message);
  }
  for (const queue of await broker.queues()) {
    const { counts } = await broker.queueStats(queue);
    const active = await broker.tasks(queue, 'active', { page: 1, size: Math.max(counts.active, 1) });
    const running = active.find(({ isOrphaned }) => !isOrphaned);
    if (running === undefined) continue;
    const message = `task '${running.message.id}' of queue '${queue}' is active, and its lease lasts`;
    throw new EscapementError('ERR_TASK_STATE', message);
  }
  return { count: async () => (await countTasks(broker)).tasks, read: () => broker[TRANSFER]().read() };
}

async function requireEmpty(target: TransferableBroker): Promise<void> {
  const { tasks } = await countTasks(target);
  if (tasks === 0) return;
  const message = `the target has tasks: ${tasks}. With merge they stay, and an interrupted copy goes on`;
  throw new EscapementError('ERR_QUEUE_NOT_EMPTY', message);
}
