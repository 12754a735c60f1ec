import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { wrongType, wrongValue } from '../core/errors.ts';
import { requireText } from './require-text.ts';
import { NO_TASK_OPTIONS, requireTaskOptions, type TaskOptions } from './task-options.ts';
import { encodePayload, decodeJson } from './payload.ts';
import { printBytes, printFilled } from './show-bytes.ts';

/** What is to be checked before a task is taken: see {@link TaskType}. */
export type PayloadCheck = (task: Task) => void | Promise<void>;

const NIL_PAYLOAD = new Uint8Array(0);

/**
 * Something to do, to be enqueued: a type, which picks the handler, and a payload. Immutable.
 *
 * @typeParam P - what the payload is before it becomes JSON.
 *
 * @example
 * ```ts
 * const welcome = new Task('email:welcome', { userId: 42 }, { maxRetry: 5 });
 * await client.enqueue(welcome, { processInMs: 60_000 });
 * ```
 */
export class Task<P = unknown> {
  /** Which handler it is for. */
  readonly type: string;
  /** Bytes; empty if there is none. */
  readonly payload: Uint8Array;
  /** Whether there is a payload, also an empty one: two tasks are alike only if both have, or neither. */
  readonly hasPayload: boolean;
  /** How it is to be processed, unless `enqueue` says otherwise. */
  readonly options: TaskOptions;
  /** @internal */
  readonly check: PayloadCheck | undefined;
  /** Only for the compiler. */
  declare protected readonly payloadType?: P;

  /**
   * @param payload - bytes, which are copied, or anything that JSON can say.
   * @param options - are copied, too.
   * @throws TypeError or RangeError - an argument is wrong.
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

  /** Passed on to the handler. */
  get headers(): Readonly<Record<string, string>> {
    return this.options.headers ?? {};
  }

  /** The payload, from JSON. @throws SyntaxError - it is none. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller says what it expects
  json<T = P>(): T {
    return decodeJson(this.payload) as T;
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

/** One object may be filled in anew for each of many tasks. */
function copyOf(options: TaskOptions): TaskOptions {
  const { headers } = options;
  return headers === undefined ? { ...options } : { ...options, headers: { ...headers } };
}

/** @throws TypeError - it is not a task. */
export function requireTask(argument: string, value: unknown): asserts value is Task {
  const task = value as Partial<Task> | null | undefined;
  const isTask =
    typeof task === 'object' &&
    task !== null &&
    typeof task.type === 'string' &&
    task.payload instanceof Uint8Array;
  if (!isTask) throw wrongType(argument, 'a Task', value);
  if (task.options === undefined) throw wrongValue(argument, 'a Task that is to be enqueued', value);
}
