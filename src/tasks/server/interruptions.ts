import { EscapementError } from '../../core/errors.ts';
import type { TaskMessage } from '../task-message.ts';

/* Why a run is interrupted: what its signal says, and what is kept as the task's last error if nothing better is known. */

export function serverClosed(): EscapementError {
  return new EscapementError('ERR_SERVER_CLOSED', 'the server shuts down');
}

export function taskCancelled(): EscapementError {
  return new EscapementError('ERR_TASK_CANCELLED', 'the task was cancelled');
}

export function leaseLost(): EscapementError {
  return new EscapementError('ERR_LEASE_LOST', 'the lease of the task is over');
}

export function timedOut({ timeoutMs, deadlineMs }: TaskMessage): EscapementError {
  const limits = [
    ...(timeoutMs > 0 ? [`its timeout of ${timeoutMs} ms`] : []),
    ...(deadlineMs > 0 ? [`its deadline of ${new Date(deadlineMs).toISOString()}`] : []),
  ];
  return new EscapementError('ERR_TASK_TIMEOUT', `the task was not done within ${limits.join(' and ')}`);
}
