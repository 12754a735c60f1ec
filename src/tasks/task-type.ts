import { EscapementError, wrongType } from '../core/errors.ts';
import type { OptionTable } from '../core/options.ts';
import { requireText } from './argument-checks.ts';
import { parseJson } from './payload.ts';
import {
  mergeTaskOptions,
  NO_TASK_OPTIONS,
  requireTaskOptions,
  TASK_OPTIONS,
  type TaskOptions,
} from './task-options.ts';
import { Task } from './task.ts';

/** Options of a task type: the default options of its tasks, and the schema of their payloads. */
export interface TaskTypeOptions<Input, Output> extends TaskOptions {
  /** Schema of the payload, made with zod, valibot, arktype or another library that follows Standard Schema. */
  readonly schema: StandardSchema<Input, Output>;
}

const OPTIONS = { ...TASK_OPTIONS, schema: [requireSchema] } satisfies OptionTable<
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
    requireTaskOptions('TaskType', options, OPTIONS);
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

function describeIssue({ path = [], message }: StandardSchemaIssue): string {
  const where = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}

/**
 * A schema of any library that implements Standard Schema (https://standardschema.dev, version 1): zod, valibot, arktype and others.
 * It has only the part that this package uses, so no package is needed for the types.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** All properties of the standard. */
  readonly '~standard': StandardSchemaProps<Input, Output>;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaProps<Input, Output> {
  /** Version of the standard. */
  readonly version: 1;
  /** Name of the library. */
  readonly vendor: string;
  /** Validates a value, and returns the value that the handler receives. */
  readonly validate: (value: unknown) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
  /** Types for the compiler; absent at run time. */
  readonly types?: StandardSchemaTypes<Input, Output> | undefined;
}

/** See {@link StandardSchema}. */
export interface StandardSchemaTypes<Input, Output> {
  /** Type of the value that is enqueued. */
  readonly input: Input;
  /** Type of the value that the handler receives. */
  readonly output: Output;
}

/** A valid value, or the issues of an invalid one. */
export type StandardSchemaResult<Output> = StandardSchemaSuccess<Output> | StandardSchemaFailure;

/** Result for a valid value. */
export interface StandardSchemaSuccess<Output> {
  /** The value that the handler receives. */
  readonly value: Output;
  /** Absent: the value is valid. */
  readonly issues?: undefined;
}

/** Result for an invalid value. */
export interface StandardSchemaFailure {
  /** At least one issue. */
  readonly issues: readonly StandardSchemaIssue[];
}

/** A reason why a value is invalid. */
export interface StandardSchemaIssue {
  /** Message for a person. */
  readonly message: string;
  /** Path to the invalid part of the value. */
  readonly path?: readonly (PropertyKey | StandardSchemaPathStep)[] | undefined;
}

/** A step into a value. */
export interface StandardSchemaPathStep {
  /** Name of the property, or index. */
  readonly key: PropertyKey;
}
