import { EscapementError } from '../core/errors.ts';
import { LogLock, LogTaken, NoSockets } from '../log/log-lock.ts';

/**
 * Takes the lock of a queue in either format.
 *
 * @throws EscapementError `ERR_QUEUE_LOCKED` - another process, another thread or this one has it. `ERR_QUEUE_IO` - the folder
 * cannot hold a lock.
 */
export async function lockQueue(folder: string, queue: string): Promise<LogLock> {
  const op = 'DiskQueue.open';
  try {
    return await LogLock.acquire(folder, queue);
  } catch (error) {
    if (error instanceof LogTaken) {
      const message = `queue '${queue}' in ${folder} is open already, ${error.message}`;
      throw new EscapementError('ERR_QUEUE_LOCKED', message, { op, cause: error.cause });
    }
    if (!(error instanceof NoSockets)) throw error;
    throw new EscapementError('ERR_QUEUE_IO', `queue '${queue}': ${error.message}`, {
      op,
      cause: error.cause,
    });
  }
}
