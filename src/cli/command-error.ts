import { EscapementError } from '../core/errors.ts';
import { CannotRepair } from '../diskqueue/stored/cannot-repair.ts';

/** What a command could not do, in words for whoever typed it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  EISDIR: 'a folder, and should be a file',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the disk',
  EIO: 'the disk could not be read or written',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
};

/** An error for people: one line, and no stack where the cause is outside of this program. */
export function describeError(error: unknown): string {
  if (error instanceof CommandError || error instanceof CannotRepair) return error.message;
  if (error instanceof EscapementError && error.code === 'ERR_QUEUE_LOCKED') {
    return `${error.message}; end the process that has it open first`;
  }
  if (error instanceof EscapementError) return error.message;
  if (isSystemError(error)) {
    const reason = REASONS[error.code ?? ''];
    if (reason === undefined) return error.message; // which names the file, if there is one
    return error.path === undefined ? reason : `${error.path}: ${reason}`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}
