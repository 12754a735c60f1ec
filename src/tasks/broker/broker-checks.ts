import { wrongValue } from '../../core/errors.ts';
import { requireFiniteNumber, requireIntegerAtLeast, requireMethods } from '../../core/validate.ts';
import { requireMessage } from '../task-message.ts';
import { requireDuration } from '../task-options.ts';
import type { Broker, GroupLimits, NewTask, Page, TaskSet } from './broker.ts';

/* Checks of arguments that every broker makes, and of brokers. */

const METHODS: readonly (keyof Broker)[] = ['enqueue', 'dequeue', 'complete', 'subscribe', 'queues'];

export function requireBroker(argument: string, value: unknown): asserts value is Broker {
  requireMethods(argument, 'a Broker', METHODS, value);
}

/** @throws TypeError or RangeError - the name of its queue, or one of its times, is not valid. */
export function requireNewTask({ message, processAtMs, uniqueTtlMs }: NewTask): void {
  requireMessage(message);
  requireDuration('processAtMs', processAtMs);
  requireDuration('uniqueTtlMs', uniqueTtlMs);
}

/** A task that replaces a set is in the queue of the set. */
export function requireQueueOfSet({ queue }: TaskSet, { message }: NewTask): void {
  if (message.queue !== queue)
    throw wrongValue('task.message.queue', `the queue of the set, '${queue}'`, message.queue);
}

export function requireGroupLimits({ graceMs, maxDelayMs, maxSize }: GroupLimits): void {
  requireFiniteNumber('limits.graceMs', graceMs);
  requireFiniteNumber('limits.maxDelayMs', maxDelayMs);
  requireIntegerAtLeast('limits.maxSize', 0, maxSize);
}

export function requirePage({ page, size }: Page): void {
  requireIntegerAtLeast('page.page', 1, page);
  requireIntegerAtLeast('page.size', 1, size);
}
