import { EscapementError, hasCode, isSystemError } from '../../core/errors.ts';
import type { TaskMessage } from '../task-options.ts';
import type { LeasedTask, Tick } from './broker.ts';
import { MOST_AHEAD_MS } from './broker-settings.ts';

/* The errors of brokers, each with one code and one message. Those without an `op` get the name of their operation from BrokerBase. */

/** Whether the broker could not be reached, or has not answered: the next attempt may succeed. */
export function isUnavailable(error: unknown): boolean {
  return hasCode(error, 'ERR_BROKER_UNAVAILABLE');
}

/** Wraps an error of the host; returns other errors as they are. @param what - what has failed. */
export function hostUnavailable(error: unknown, what: string): unknown {
  if (!isSystemError(error)) return error;
  return new EscapementError('ERR_BROKER_UNAVAILABLE', `${what}: ${error.message}`, { cause: error });
}

/** Names the operation in an error that does not name one yet. @returns the error. */
export function withOperation(error: unknown, op: string): unknown {
  const isUnnamed = error instanceof EscapementError && error.op === undefined;
  return isUnnamed ? Object.assign(error, { op }) : error;
}

export function brokerClosed(): EscapementError {
  return new EscapementError('ERR_BROKER_CLOSED', 'the broker is closed');
}

/** Returns the error for a task whose lock is held. A task that holds it already was added by an earlier call. */
export function taskDuplicate(
  { id, queue }: Pick<TaskMessage, 'id' | 'queue'>,
  ownerId: string,
): EscapementError {
  if (ownerId === id) return taskIdConflict(queue, id);
  const message = `duplicate of task '${ownerId}' in queue '${queue}': its unique lock is still held`;
  return new EscapementError('ERR_TASK_DUPLICATE', message);
}

export function taskIdConflict(queue: string, id: string): EscapementError {
  return new EscapementError('ERR_TASK_ID_CONFLICT', `queue '${queue}' already has a task '${id}'`);
}

export function tickEarly({ entryKey, atMs }: Tick): EscapementError {
  const tick = `tick ${new Date(atMs).toISOString()} of schedule entry '${entryKey}'`;
  const limit = `more than ${MOST_AHEAD_MS} ms ahead of the broker's time`;
  return new EscapementError('ERR_TICK_EARLY', `${tick} is ${limit}: the scheduler's clock is wrong`);
}

export function queueNotFound(queue: string): EscapementError {
  return new EscapementError('ERR_QUEUE_NOT_FOUND', `there is no queue '${queue}'`);
}

export function taskNotFound(queue: string, id: string): EscapementError {
  return new EscapementError('ERR_TASK_NOT_FOUND', `queue '${queue}' has no task '${id}'`);
}

export function taskState(queue: string, id: string, state: string, verb: string): EscapementError {
  const message = `task '${id}' of queue '${queue}' is ${state}, and cannot be ${verb}`;
  return new EscapementError('ERR_TASK_STATE', message);
}

export function bulkState(state: string, verb: string): EscapementError {
  return new EscapementError('ERR_TASK_STATE', `tasks that are ${state} cannot be ${verb}`);
}

export function leaseLost({ message, epoch }: LeasedTask): EscapementError {
  const task = `task '${message.id}' of queue '${message.queue}'`;
  return new EscapementError('ERR_LEASE_LOST', `${task} is no longer under lease ${epoch}`);
}

export function setLost(queue: string, group: string): EscapementError {
  const message = `the set of group '${group}' of queue '${queue}' was returned to the group, replaced or removed`;
  return new EscapementError('ERR_LEASE_LOST', message);
}

export function queueState(queue: string, is: string): EscapementError {
  return new EscapementError('ERR_QUEUE_STATE', `queue '${queue}' is ${is}`);
}

/** @param tasks - number of its tasks, unless some are active. */
export function queueNotEmpty(queue: string, tasks: number | 'active'): EscapementError {
  return new EscapementError(
    'ERR_QUEUE_NOT_EMPTY',
    `queue '${queue}' has ${tasks} ${tasks === 1 ? 'task' : 'tasks'}`,
  );
}
