import { EscapementError, hasCode, isSystemError } from '../core/errors.ts';
import { CannotRepair } from '../diskqueue/stored/stored-queue.ts';
import { ForeignLog } from '../log/recover-segments.ts';
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

const EXPECTED_CLASSES = [CommandError, EscapementError, HttpError, CannotRepair, ForeignLog] as const;

/** Codes of arguments that only the broker checks. */
const EXPECTED_CODES = ['ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE'];

/** Returns whether an error is neither a fault of this program nor one of the host: its message is for users. */
export function isExpected(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (EXPECTED_CLASSES.some((kind) => error instanceof kind)) return true;
  return 'code' in error && EXPECTED_CODES.includes(String(error.code));
}

/** Returns an error as text for users: one harmless line, and the stack only if the error is a fault of this program. */
export function describeError(error: unknown): string {
  if (hasCode(error, 'ERR_QUEUE_LOCKED'))
    return harmless(`${error.message}; end the process that has it open first`);
  if (isExpected(error)) return harmless(error.message);
  if (isSystemError(error)) return harmless(describeSystemError(error));
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function describeSystemError(error: NodeJS.ErrnoException): string {
  const { code = '', message, path } = error;
  const reason = REASONS[code];
  if (reason === undefined || 'address' in error) return message; // it names the file, or the address and the port
  if (path === undefined) return reason;
  // The host decodes bytes of a name that are not UTF-8 as this character, and there is no file with the decoded name.
  const isOddName = code === 'ENOENT' && path.includes('\ufffd');
  return `${path}: ${reason}${isOddName ? '; its name is not UTF-8' : ''}`;
}
