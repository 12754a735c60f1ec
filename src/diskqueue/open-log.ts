import { EscapementError, wrongValue } from '../core/errors.ts';
import { LogLock, LogTaken, NoSockets } from '../log/log-lock.ts';
import { ForeignLog } from '../log/recover-segments.ts';
import { parseSegmentFileName } from '../log/segment.ts';
import { CheckedLog } from './checked/checked-log.ts';
import type { ResolvedDiskQueueOptions } from './disk-queue-options.ts';
import type { CorruptionEvent, MessageLog } from './message-log.ts';
import { filesOfQueue } from './nsq/format.ts';
import { NsqLog } from './nsq/nsq-log.ts';

/* What a queue needs before it is open: its lock, and its log, in the format of its files. */

/**
 * Takes the lock of a queue in either format.
 *
 * @throws EscapementError `ERR_QUEUE_LOCKED` - another process, another thread or this one has it. `ERR_QUEUE_IO` - the folder
 * cannot hold a lock.
 */
export async function lockQueue(folder: string, queue: string): Promise<LogLock> {
  try {
    return await LogLock.acquire(folder, queue);
  } catch (error) {
    if (!(error instanceof LogTaken || error instanceof NoSockets)) throw error;
    const [code, message] =
      error instanceof LogTaken
        ? (['ERR_QUEUE_LOCKED', `queue '${queue}' in ${folder} is open already, ${error.message}`] as const)
        : (['ERR_QUEUE_IO', `queue '${queue}': ${error.message}`] as const);
    throw new EscapementError(code, message, { op: 'DiskQueue.open', cause: error.cause });
  }
}

/** Opens the log of a queue in the format of its options. @throws TypeError - its files are in the other format, or of a broker. */
export async function openLog(
  options: ResolvedDiskQueueOptions,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<MessageLog> {
  const { files, folder, name, maxBytesPerFile, maxMessageSize, durability, clock, format } = options;
  await requireNoOther(options);
  const isAlwaysDurable = durability === 'always';
  const common = { files, folder, name, maxBytesPerFile, isAlwaysDurable, onCorruption };
  if (format === 'nsq') return NsqLog.open({ ...common, maxMessageSize });
  try {
    return await CheckedLog.open({ ...common, wallNow: () => clock.wallNow() });
  } catch (error) {
    if (!(error instanceof ForeignLog)) throw error;
    const requirement = `another name: the files of that name in ${folder} are those of a broker`;
    throw wrongValue('options.name', requirement, name);
  }
}

/** An empty queue beside the files of the other format would look as if their messages were lost. */
async function requireNoOther({ files, folder, name, format }: ResolvedDiskQueueOptions): Promise<void> {
  const names = await files.list(folder);
  const isChecked = names.some((file) => parseSegmentFileName(file)?.log === name);
  const isNsq = filesOfQueue(name, names).data.length > 0;
  const other = format === 'nsq' ? isChecked && 'checked' : isNsq && 'nsq';
  if (other === false) return;
  throw wrongValue('options.format', `'${other}', as the files of queue '${name}' in ${folder} are`, format);
}
