import { EscapementError } from '../../../core/errors.ts';

/**
 * What a server answers that is there and cannot do it now: it starts, stops, is a replica since a failover, waits for a
 * replica or a disk, or the cluster moves slots. A script of an old server says it in the middle of its own message.
 */
const NOT_NOW =
  /(?:^|: -)(?:LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNKILLABLE|NOREPLICAS|MISCONF|NOMASTERLINK) /u;

/** How ioredis says that there is no connection, or none any more. */
const NO_CONNECTION =
  /^(?:Connection is closed|Command timed out|connect ETIMEDOUT|Stream isn't writeable|Cluster isn't ready|Cluster is |None of startup nodes|All sentinels are unreachable|Too many Cluster redirections|Socket timeout|No subscriber for the cluster|Redis is already connecting)/u;

const NO_CONNECTION_NAMES: ReadonlySet<string> = new Set([
  'MaxRetriesPerRequestError',
  'ClusterAllFailedError',
  'AbortError',
]);

/** The commands that have a password among their arguments. */
const WITH_PASSWORD: ReadonlySet<string> = new Set(['auth', 'hello']);

/** How a server ends its message about a command that it does not know. */
const REPEATED_ARGUMENTS = /, with args beginning with: [^\n]*/u;

/** How ioredis says that it has given up a command, in our words: we know no such limit. */
const CONNECTION_LOST = 'the connection was lost before the answer';

/**
 * The error of a broker for one of its client. If Redis is out of reach, does not answer in time, or says that it cannot
 * now, that is `ERR_BROKER_UNAVAILABLE`: what was asked for may have happened. All others stay themselves.
 */
export function toBrokerError(error: unknown, op: string): unknown {
  return isOutOfReach(error) ? unavailable(op, error) : withoutPassword(error);
}

/** The way to Redis has failed, and `cause` is how, without a password. */
export function unavailable(op: string, cause: unknown): EscapementError {
  withoutPassword(cause);
  const why = reasonOf(cause);
  const said = nameOf(cause) === 'MaxRetriesPerRequestError' ? CONNECTION_LOST : why;
  return new EscapementError('ERR_BROKER_UNAVAILABLE', `Redis is unavailable: ${said}`, { op, cause });
}

/**
 * Takes passwords out of an error of the client, and out of the errors in it: every error of ours has gone through this.
 * ioredis puts the command that failed, with its arguments, on the error; a server that does not know the command repeats
 * them in its message.
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

export function brokerClosed(op: string): EscapementError {
  return new EscapementError('ERR_BROKER_CLOSED', 'the broker is closed', { op });
}

const TIMED_OUT = 'Command timed out';

/** What ioredis says too, if it has a limit. */
export function commandTimedOut(): Error {
  return new Error(TIMED_OUT);
}

/** The server has not answered in time: whether it will is not known, so no more is asked on that connection. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === TIMED_OUT;
}

/** The server is a replica: it was the primary when we connected, or is none of ours. */
export function isReadOnly(error: Error): boolean {
  return /(?:^|: -)READONLY /u.test(error.message);
}

function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof EscapementError) return false;
  if (error.name === 'ReplyError') return NOT_NOW.test(error.message);
  return 'syscall' in error || NO_CONNECTION_NAMES.has(error.name) || NO_CONNECTION.test(error.message);
}

/** Of a cluster none of whose nodes is of use, with what the last one said. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { lastNodeError } = cause as Error & { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? `${cause.message} ${lastNodeError.message}` : cause.message;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}
