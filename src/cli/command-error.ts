import { EscapementError, hasCode, isSystemError } from '../core/errors.ts';
import { CannotRepair } from '../diskqueue/stored/stored-queue.ts';
import { HttpError } from '../tasks/http/http-error.ts';
import { harmless } from './terminal/text.ts';

export class CommandError extends Error {
  override readonly name = 'CommandError';
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  EISDIR: 'a folder, and should be a file',
  ENOTDIR: 'not a folder',
  ENXIO: 'a socket or a device, and should be a file',
  EFTYPE: 'a pipe or a device, and should be a file',
  ELOOP: 'a symbolic link that leads to itself',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the disk',
  EIO: 'the disk could not be read or written',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
};

/** Returns an error as text for users: one harmless line, and the stack only if the error is a fault of this program. */
export function describeError(error: unknown): string {
  const message = messageOf(error);
  if (message !== undefined) return harmless(message);
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Returns undefined for a fault of this program. */
function messageOf(error: unknown): string | undefined {
  if (error instanceof CommandError || error instanceof CannotRepair) return error.message;
  if (hasCode(error, 'ERR_QUEUE_LOCKED')) return `${error.message}; end the process that has it open first`;
  if (error instanceof EscapementError || error instanceof HttpError) return error.message;
  return isSystemError(error) ? describeSystemError(error) : undefined;
}

function describeSystemError({ code = '', message, path }: NodeJS.ErrnoException): string {
  const reason = REASONS[code];
  if (reason === undefined) return message; // it names the file, if there is one
  if (path === undefined) return reason;
  // The host decodes bytes of a name that are not UTF-8 as this character, and there is no file with the decoded name.
  const isOddName = code === 'ENOENT' && path.includes('\ufffd');
  return `${path}: ${reason}${isOddName ? '; its name is not UTF-8' : ''}`;
}
