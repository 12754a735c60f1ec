import { EscapementError } from '../core/errors.ts';
import type { OptionTable } from '../core/options.ts';
import { requireMethods, requireObject } from '../core/validate.ts';
import { parseJson } from './payload.ts';
import { requireText } from './require-text.ts';
import type { StandardSchema, StandardSchemaIssue } from './standard-schema.ts';
import {
  mergeTaskOptions,
  NO_TASK_OPTIONS,
  requireTaskOptions,
  TASK_OPTIONS,
  type TaskOptions,
} from './task-options.ts';
import { Task } from './task.ts';

/** What a task type is declared with: how its tasks are processed unless they say otherwise, and what their payload is. */
export interface TaskTypeOptions<Input, Output> extends TaskOptions {
  /** What its payload must be: of zod, valibot, arktype or another such library. */
  readonly schema: StandardSchema<Input, Output>;
}

const OPTIONS = { ...TASK_OPTIONS, schema: [requireSchema] } satisfies OptionTable<
  TaskTypeOptions<unknown, unknown>
>;

/**
 * Declares a type of task once: its payload is checked when it is enqueued and when it is handled, and typed in both
 * places. The schema is of any library that follows Standard Schema.
 *
 * @typeParam Input - what is enqueued, as JSON.
 * @typeParam Output - what the schema makes of it for the handler.
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
  /** Of its tasks. */
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

  /** A task to enqueue; what is wrong with its payload is said then. Options given here are laid over the type's. */
  task(payload: Input, options: TaskOptions = NO_TASK_OPTIONS): Task<Input> {
    requireTaskOptions('TaskType.task', options);
    return new Task(this.type, payload, mergeTaskOptions(this.#options, options), this.#check);
  }

  /** What a task carries, checked: for those who get tasks by the dozen, as `groupAggregator` does. @throws as `parse`. */
  async read(task: Pick<Task, 'type' | 'payload'>): Promise<Output> {
    return this.parse(payloadOf(task));
  }

  /** @throws EscapementError `ERR_TASK_PAYLOAD` - it is not what the schema asks for. */
  async parse(payload: unknown): Promise<Output> {
    const result = await this.#schema['~standard'].validate(payload);
    if (result.issues === undefined) return result.value;
    const told = result.issues.map(tell).join('; ');
    throw new EscapementError('ERR_TASK_PAYLOAD', `payload of '${this.type}': ${told}`);
  }
}

/** What can read the payload of a task: a {@link TaskType}. */
export interface TaskReader<Output> {
  /** What a task carries, checked. */
  read(task: Pick<Task, 'type' | 'payload'>): Promise<Output>;
}

/** What a handler of a task type is given as `task.data`. */
export type TaskData<T> = T extends TaskReader<infer Output> ? Output : never;

/** Told by its shape: it may come from another loaded copy of the package. */
export function isTaskType(value: unknown): value is TaskType<unknown> {
  const taskType = value as Partial<TaskType<unknown>> | null | undefined;
  return typeof taskType === 'object' && taskType !== null && typeof taskType.read === 'function';
}

/** A schema of arktype is a function. */
function requireSchema(argument: string, schema: unknown): void {
  if (typeof schema !== 'function') requireObject(argument, schema);
  const { '~standard': standard } = schema as StandardSchema;
  requireMethods(argument, 'a Standard Schema', ['validate'], standard);
}

/** What its handler will be given: a Date that has become a string in JSON is a string here too. */
function payloadOf({ type, payload }: Pick<Task, 'type' | 'payload'>): unknown {
  return payload.length === 0 ? undefined : parseJson(`payload of '${type}'`, payload);
}

function tell({ path = [], message }: StandardSchemaIssue): string {
  const where = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  return where === '' ? message : `${where}: ${message}`;
}
