import { createHash } from 'node:crypto';
import type { TaskOptions } from '../task-options.ts';
import type { Task } from '../task.ts';

/** Hexadecimal digits of an entry's id: 128 bits. */
const ID_LENGTH = 32;

/** The task's options, and over them those it was registered with: one by one, and headers one by one. Frozen: callbacks see it. */
export function mergeTaskOptions(base: TaskOptions, over: TaskOptions): TaskOptions {
  const isTimed = over.processAt !== undefined || over.processInMs !== undefined;
  const timeless = isTimed ? { ...base, processAt: undefined, processInMs: undefined } : base;
  const merged = Object.fromEntries([...definedOf(timeless), ...definedOf(over)]) as TaskOptions;
  if (base.headers === undefined && over.headers === undefined) return Object.freeze(merged);
  return Object.freeze({ ...merged, headers: Object.freeze({ ...base.headers, ...over.headers }) });
}

/**
 * What makes an entry the one it is: its spec and time zone, the task's type and payload, and all options. The same
 * wherever it is registered, and in whatever order options and headers are named.
 */
export function identityOf(cronSpec: string, location: string, task: Task, options: TaskOptions): string {
  const { headers = {}, ...others } = mergeTaskOptions(task.options, options);
  return JSON.stringify([
    cronSpec.trim(),
    location,
    task.type,
    task.hasPayload ? Buffer.from(task.payload).toString('base64') : null,
    definedOf(others).sort(byName).map(plain),
    Object.entries(headers).sort(byName),
  ]);
}

/** An entry's id, if it was not given one: the same in every scheduler, so that its history survives a restart. */
export function entryIdOf(identity: string): string {
  return createHash('sha256').update(identity).digest('hex').slice(0, ID_LENGTH);
}

function definedOf(options: TaskOptions): [string, unknown][] {
  return Object.entries(options).filter(([, value]) => value !== undefined);
}

function plain([name, value]: [string, unknown]): readonly [string, unknown] {
  return [name, value instanceof Date ? value.getTime() : value];
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
