import { EscapementError, isSystemError } from '../../../core/errors.ts';

/**
 * Replies of a server that is reachable and cannot serve now: it starts, stops, is a replica since a failover, waits for a replica or
 * a disk, its memory is full, or the cluster moves slots. For a script, an old server has them in the middle of a message of its own.
 */
const NOT_NOW =
  /(?:^|: -)(?:LOADING|OOM|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNKILLABLE|NOREPLICAS|MISCONF|NOMASTERLINK) /u;

/** Messages of ioredis when there is no connection, or no longer one. */
const NO_CONNECTION =
  /^(?:Connection is closed|Command timed out|connect ETIMEDOUT|Stream isn't writeable|Cluster isn't ready|Cluster is |None of startup nodes|All sentinels are unreachable|Too many Cluster redirections|Socket timeout|No subscriber for the cluster|Redis is already connecting)/u;

/** Messages of ioredis 6 and 5 when the server has sent something that is no reply, or more replies than it was asked for. */
const NO_REPLY = /^(?:Unknown RESP type|Protocol error, got|Command queue state error)/u;

const NO_CONNECTION_NAMES: ReadonlySet<string> = new Set([
  'MaxRetriesPerRequestError',
  'ClusterAllFailedError',
  'AbortError',
]);

/** The error of `wrongType` in script.ts, which Redis surrounds with the line of the script; and that of a command. */
const WRONG_TYPE = /the Redis key '.*' must be a \w+\. It is a \w+|^WRONGTYPE .*/su;

/** The commands with a password among their arguments. */
const WITH_PASSWORD: ReadonlySet<string> = new Set(['auth', 'hello']);

/** The end of a server's message about an unknown command. */
const REPEATED_ARGUMENTS = /, with args beginning with: [^\n]*/u;

/** Replaces the message of ioredis about a retry limit, which is not an option of ours. */
const CONNECTION_LOST = 'the connection was lost before the answer';

/**
 * Returns the error of a broker for an error of its client. If Redis cannot be reached, does not answer in time, or cannot serve
 * now, that is `ERR_BROKER_UNAVAILABLE`: the operation may have happened. A key of a wrong type is `ERR_WIRE_MESSAGE`. Other replies
 * are `ERR_BROKER_REFUSED`: the user may not run a command, for one. An error that is none of Redis is returned as it is.
 */
export function toBrokerError(error: unknown): unknown {
  if (isSystemError(error)) return unavailable(error);
  if (!(error instanceof Error) || error instanceof EscapementError) return error;
  // First, because the name of a key is text of users and may look like any reply.
  const wrongType = WRONG_TYPE.exec(error.message)?.[0];
  if (wrongType !== undefined) return new EscapementError('ERR_WIRE_MESSAGE', wrongType, { cause: error });
  if (isOutOfReach(error)) return unavailable(error);
  withoutPassword(error);
  if (error.name !== 'ReplyError') return error;
  return new EscapementError('ERR_BROKER_REFUSED', `Redis refuses: ${error.message}`, { cause: error });
}

/** Returns the error for a Redis that cannot be reached because of `cause`, whose passwords are removed. */
export function unavailable(cause: unknown): EscapementError {
  withoutPassword(cause);
  const isLost = cause instanceof Error && cause.name === 'MaxRetriesPerRequestError';
  const reason = isLost ? CONNECTION_LOST : reasonOf(cause);
  return new EscapementError('ERR_BROKER_UNAVAILABLE', `Redis is unavailable: ${reason}`, { cause });
}

/**
 * Removes passwords from an error of the client, and from the errors in it. ioredis puts the command that failed, with its
 * arguments, on the error; a server that does not have the command repeats them in its message.
 *
 * @returns the same error.
 */
export function withoutPassword<E>(error: E, seen = new Set<unknown>()): E {
  if (!(error instanceof Error) || seen.has(error)) return error;
  seen.add(error);
  hideArguments(error);
  for (const key of Reflect.ownKeys(error)) {
    const inner: unknown = Reflect.get(error, key);
    for (const each of Array.isArray(inner) ? inner : [inner]) withoutPassword(each, seen);
  }
  return error;
}

function hideArguments(error: Error & { command?: { readonly name?: unknown } }): void {
  const { command } = error;
  if (!WITH_PASSWORD.has(String(command?.name).toLowerCase())) return;
  error.command = { ...command, args: [] } as typeof command & object;
  error.message = error.message.replace(REPEATED_ARGUMENTS, '');
  if (error.stack !== undefined) error.stack = error.stack.replace(REPEATED_ARGUMENTS, '');
}

const TIMED_OUT = 'Command timed out';

/** Returns the error that ioredis reports if it has a limit. */
export function commandTimedOut(): Error {
  return new Error(TIMED_OUT);
}

/** Whether the server has not answered in time. It may still answer, so nothing more is sent on that connection. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === TIMED_OUT;
}

/** Whether the server is a replica: it was the primary when the client connected, or the client was configured with the address of a replica. */
export function isReadOnly(error: Error): boolean {
  return /(?:^|: -)READONLY /u.test(error.message);
}

function isOutOfReach(error: Error): boolean {
  if (error.name === 'ReplyError') return NOT_NOW.test(error.message);
  return (
    NO_CONNECTION_NAMES.has(error.name) || NO_CONNECTION.test(error.message) || NO_REPLY.test(error.message)
  );
}

/** Returns the message of an error; for a cluster without a usable node, with the error of the last node. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { lastNodeError } = cause as Error & { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? `${cause.message} ${lastNodeError.message}` : cause.message;
}
