import { isSystemError } from '../../core/errors.ts';
import type { CorruptionEvent } from '../../diskqueue/message-log.ts';
import { listQueues } from '../../diskqueue/stored/list-queues.ts';
import type { OnProgress, StoredQueue } from '../../diskqueue/stored/stored-queue.ts';
import { hostFileSystem } from '../../log/file-system.ts';
import { CommandError, describeError, isExpected } from '../command-error.ts';
import { requireFolder, withoutSeparator } from '../options.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';
import { endWith, EXIT_CODES, printError, type Terminal } from '../terminal/terminal.ts';
import { counted, formatCount, printable } from '../terminal/text.ts';

/** A folder with its queues. */
interface QueuesOfFolder {
  readonly folder: string;
  readonly queues: readonly StoredQueue[];
}

/** A queue on which a command failed. */
interface FailedQueue {
  readonly name: string;
  readonly format: string;
  readonly message: string;
}

/** Options of the commands. */
export interface QueueOptions {
  readonly queue?: string;
  readonly json?: boolean;
}

/**
 * Runs an operation on each queue, also after one whose files cannot be read: the exit code is 2 then.
 *
 * @param lines - what is printed of each result, unless the output is JSON.
 */
export async function eachQueue<R>(
  terminal: Terminal,
  isJson: boolean,
  queues: readonly StoredQueue[],
  work: (queue: StoredQueue) => Promise<R>,
  lines: (result: R) => readonly string[] = () => [],
): Promise<{ readonly done: readonly R[]; readonly failed: readonly FailedQueue[] }> {
  const done: R[] = [];
  const failed: FailedQueue[] = [];
  for (const queue of queues) {
    terminal.signal.throwIfAborted();
    try {
      const result = await work(queue);
      done.push(result);
      if (!isJson) await terminal.out.print(...lines(result));
    } catch (error) {
      if (!isSystemError(error) && !isExpected(error)) throw error;
      const message = describeError(error);
      failed.push({ name: queue.name, format: queue.format, message });
      endWith(terminal, EXIT_CODES.failed);
      if (!isJson) await printError(terminal, message);
    }
  }
  return { done, failed };
}

/** Reads every byte of a queue, with a progress bar. */
export async function withProgress<R>(
  { name }: StoredQueue,
  { err, signal }: Terminal,
  work: (onProgress: OnProgress) => Promise<R>,
): Promise<R> {
  const bar = new ProgressBar(err, printable(name));
  try {
    return await work((done, total) => {
      signal.throwIfAborted();
      bar.update(done, total);
    });
  } finally {
    bar.stop();
  }
}

/** Returns all queues in a folder. @throws CommandError - it is not a folder. */
export async function queuesIn(dir: string): Promise<QueuesOfFolder> {
  const folder = withoutSeparator(dir);
  requireFolder(folder);
  return { folder, queues: await listQueues(hostFileSystem, folder) };
}

/** Returns the queues with a name; all queues if it is undefined. @throws CommandError - there are none. */
export async function someQueuesIn(dir: string, name: string | undefined): Promise<QueuesOfFolder> {
  const { folder, queues } = await queuesIn(dir);
  if (queues.length === 0) throw new CommandError(`${folder}: there are no queues in this folder`);
  if (name === undefined) return { folder, queues };
  const named = queues.filter((queue) => queue.name === name);
  if (named.length === 0) {
    const there = [...new Set(queues.map((queue) => printable(queue.name)))].join(', ');
    throw new CommandError(`${folder}: there is no queue '${name}' in this folder. Queues: ${there}`);
  }
  return { folder, queues: named };
}

/** Returns one line, with the name of a record: `orders.0000000001.segment at 128, 1,024 bytes, messages 3 to 4: the checksum of a payload is wrong`. */
export function describeDamage(damage: CorruptionEvent, unit = 'message'): string {
  const { file, offset, bytes, firstSequence: first, lastSequence: last, reason } = damage;
  const messages =
    first === undefined
      ? []
      : [first === last || last === undefined ? `${unit} ${first}` : `${unit}s ${first} to ${last}`];
  const where = [`${file} at ${formatCount(offset)}`, counted(bytes, 'byte'), ...messages].join(', ');
  return `${where}: ${reason}`;
}
