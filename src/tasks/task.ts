import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { wrongType, wrongValue } from '../core/errors.ts';
import { requireText } from './argument-checks.ts';
import { encodePayload, parseJson, printBytes, printFilled } from './payload.ts';
import { NO_TASK_OPTIONS, requireTaskOptions, type TaskOptions } from './task-options.ts';

/** Checks a task before it is enqueued: see {@link TaskType}. */
export type PayloadCheck = (task: Task) => void | Promise<void>;

const NIL_PAYLOAD = new Uint8Array(0);

/**
 * A task to enqueue: a type, by which servers find its handler, and a payload. Immutable.
 *
 * @typeParam P - type of the payload before it is encoded as JSON.
 *
 * @example
 * ```ts
 * const welcome = new Task('email:welcome', { userId: 42 }, { maxRetry: 5 });
 * await client.enqueue(welcome, { processInMs: 60_000 });
 * ```
 */
export class Task<P = unknown> {
  /** Type of the task, by which a server finds its handler. */
  readonly type: string;
  /** Payload, in bytes; empty if there is none. */
  readonly payload: Uint8Array;
  /** Whether there is a payload, even an empty one: a task without a payload is no duplicate of a task with an empty one. */
  readonly hasPayload: boolean;
  /** Default options of the task, which those of `enqueue` override. */
  readonly options: TaskOptions;
  /** @internal */
  readonly check: PayloadCheck | undefined;
  /** Exists only for the compiler. */
  declare protected readonly payloadType?: P;

  /**
   * @param payload - bytes, which are copied, or a JSON-serializable value.
   * @param options - are copied, too.
   * @throws TypeError or RangeError - an argument is not valid.
   */
  constructor(
    type: string,
    payload?: P | Uint8Array,
    options: TaskOptions = NO_TASK_OPTIONS,
    check?: PayloadCheck,
  ) {
    requireText('type', type);
    requireTaskOptions('Task', options);
    this.type = type;
    this.hasPayload = payload !== undefined;
    this.payload = payload === undefined ? NIL_PAYLOAD : encodePayload(payload);
    this.options = options === NO_TASK_OPTIONS ? NO_TASK_OPTIONS : copyOf(options);
    this.check = check;
  }

  /** Headers, which the handler receives. */
  get headers(): Readonly<Record<string, string>> {
    return this.options.headers ?? {};
  }

  /** Parses the payload as JSON. @throws EscapementError `ERR_TASK_PAYLOAD` - the payload is empty, or not JSON in UTF-8. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller declares what it expects
  json<T = P>(): T {
    return parseJson(`payload of '${this.type}'`, this.payload, 'Task.json') as T;
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ hasPayload: undefined, check: undefined },
      payload: printBytes(this.payload),
      options: printFilled(this.options),
    }));
  }
}

/** A task that is being enqueued. */
export interface EnqueueRequest {
  /** The task. */
  readonly task: Task;
  /** Options that override those of the task. */
  readonly options: TaskOptions;
}

/** A caller may reuse one object of options for many tasks. */
function copyOf(options: TaskOptions): TaskOptions {
  const { headers } = options;
  return headers === undefined ? { ...options } : { ...options, headers: { ...headers } };
}

export function requireTask(argument: string, value: unknown): asserts value is Task {
  const task = value as Partial<Task> | null | undefined;
  if (typeof task?.type !== 'string' || !(task.payload instanceof Uint8Array))
    throw wrongType(argument, 'a Task', value);
  if (task.options === undefined)
    throw wrongValue(argument, 'a Task with options, not a received task', value);
}
