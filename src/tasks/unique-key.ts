import { createHash } from 'node:crypto';
import type { Task } from './task.ts';

/** asynq's: two tasks of a queue are alike if their type and the bytes of their payload are. */
export function uniqueKeyOf(queue: string, { type, payload, hasPayload }: Task): string {
  const digest = hasPayload ? createHash('md5').update(payload).digest('hex') : '';
  return `asynq:{${queue}}:unique:${type}:${digest}`;
}
