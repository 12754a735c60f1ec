import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import type { OptionTable } from '../core/options.ts';
import { requireText } from './argument-checks.ts';
import { encodePayload, parseJson, printBytes, printFilled } from './payload.ts';
import {
  mergeTaskOptions,
  NO_TASK_OPTIONS,
  requireTaskOptions,
  TASK_OPTIONS,
  type TaskOptions,
} from './task-options.ts';

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

/** A task, and how it is to be enqueued. */
export interface EnqueueEntry {
  /** The task. */
  readonly task: Task;
  /** Options that override those of the task. @default none */
  readonly options?: TaskOptions | undefined;
}

/** A task that is being enqueued. */
export interface EnqueueRequest extends EnqueueEntry {
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

/* Types with a schema. */

/** Options of a task type: the default options of its tasks, and the schema of their payloads. */
export interface TaskTypeOptions<Input, Output> extends TaskOptions {
  /** Schema of the payload, made with zod, valibot, arktype or another library that follows Standard Schema. */
  readonly schema: StandardSchema<Input, Output>;
}

const TYPE_OPTIONS = { ...TASK_OPTIONS, schema: [requireSchema] } satisfies OptionTable<
  TaskTypeOptions<unknown, unknown>
>;

/**
 * Declares a type of task, whose payload is typed, and is validated both when it is enqueued and when it is handled. Any library
 * that follows Standard Schema can make the schema.
 *
 * @typeParam Input - type of the payload that is enqueued, as JSON.
 * @typeParam Output - type that the schema converts it to, for the handler.
 *
 * @example
 * ```ts
 * const resize = defineTask('image:resize', { schema: z.object({ path: z.string(), width: z.number() }), maxRetry: 3 });
 *
 * await client.enqueue(resize.task({ path: 'cat.jpg', width: 640 }));
 * mux.handle(resize, (task) => shrink(task.data.path, task.data.width));
 * ```
 */
export function defineTask<Input, Output = Input>(
  type: string,
  options: TaskTypeOptions<Input, Output>,
): TaskType<Input, Output> {
  return new TaskType(type, options);
}

/** See {@link defineTask}. */
export class TaskType<Input, Output = Input> {
  /** Type of its tasks. */
  readonly type: string;
  readonly #schema: StandardSchema<Input, Output>;
  readonly #options: TaskOptions;
  readonly #check = async (task: Task): Promise<void> => {
    await this.read(task);
  };

  constructor(type: string, options: TaskTypeOptions<Input, Output>) {
    requireText('type', type);
    requireTaskOptions('TaskType', options, TYPE_OPTIONS);
    const { schema, ...taskOptions } = options;
    this.type = type;
    this.#schema = schema;
    this.#options = taskOptions;
  }

  /** Makes a task. Its payload is validated when it is enqueued. Options override those of the type. */
  task(payload: Input, options: TaskOptions = NO_TASK_OPTIONS): Task<Input> {
    requireTaskOptions('TaskType.task', options);
    const merged = options === NO_TASK_OPTIONS ? this.#options : mergeTaskOptions(this.#options, options);
    return new Task(this.type, payload, merged, this.#check);
  }

  /** Validates the payload of a task: for code that receives many tasks, such as a `groupAggregator`. @throws as `parse`. */
  async read(task: Pick<Task, 'type' | 'payload'>): Promise<Output> {
    return this.parse(payloadOf(task));
  }

  /** Validates a payload. @throws EscapementError `ERR_TASK_PAYLOAD` - it does not match the schema. */
  async parse(payload: unknown): Promise<Output> {
    const result = await this.#schema['~standard'].validate(payload);
    if (result.issues === undefined) return result.value;
    const issues = result.issues.map(describeIssue).join('; ');
    const message = `payload of '${this.type}': ${issues}`;
    throw new EscapementError('ERR_TASK_PAYLOAD', message, { op: 'TaskType.parse' });
  }
}

/** Reads the payload of a task; a {@link TaskType} is one. */
export interface TaskReader<Output> {
  /** Returns the validated payload of a task. */
  read(task: Pick<Task, 'type' | 'payload'>): Promise<Output>;
}

/** Type of `task.data` in a handler of a task type. */
export type TaskData<T> = T extends TaskReader<infer Output> ? Output : never;

/** Checks the shape: the value may come from another loaded copy of the package. */
export function isTaskType(value: unknown): value is TaskType<unknown> {
  return typeof (value as Partial<TaskType<unknown>> | null | undefined)?.read === 'function';
}

/** A schema of arktype is a function, others are objects. */
function requireSchema(argument: string, schema: unknown): void {
  const standard = (schema as Partial<StandardSchema> | null | undefined)?.['~standard'];
  if (typeof standard?.validate !== 'function') {
    throw wrongType(argument, 'a Standard Schema, such as one of zod', schema);
  }
}

/** Parses the payload as its handler will: a Date that is a string in JSON is a string here, too. */
function payloadOf({ type, payload }: Pick<Task, 'type' | 'payload'>): unknown {
  return payload.length === 0 ? undefined : parseJson(`payload of '${type}'`, payload, 'TaskType.read');
}

function describeIssue({ path = [], message }: Issue): string {
  const where = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}

/**
 * A schema of any library that implements Standard Schema (https://standardschema.dev, version 1): zod, valibot, arktype and others.
 * It has only the part that this package uses, so no package is needed for the types.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** All properties of the standard. */
  readonly '~standard': {
    /** Version of the standard. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Validates a value, and returns the value that the handler receives, or the issues: at least one. */
    readonly validate: (value: unknown) => Validation<Output> | Promise<Validation<Output>>;
    /** Types for the compiler; absent at run time. */
    readonly types?:
      | {
          /** Type of the value that is enqueued. */
          readonly input: Input;
          /** Type of the value that the handler receives. */
          readonly output: Output;
        }
      | undefined;
  };
}

type Validation<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

/** A reason why a value is invalid: a message for a person, and the path to the invalid part. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
