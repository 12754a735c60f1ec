import { EventEmitter } from 'node:events';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { requireFunction, requireObject, requireOptions, type OptionNames } from '../core/validate.ts';
import type { Broker, NewTask, TaskRecord } from './broker/broker.ts';
import { requireBroker } from './broker/require-broker.ts';
import { emit } from './emit.ts';
import { TaskInfo } from './task-info.ts';
import { newTaskOf } from './new-task.ts';
import { settleEach } from './settle-each.ts';
import { mergeTaskOptions, NO_TASK_OPTIONS, requireTaskOptions, type TaskOptions } from './task-options.ts';
import { requireTask, type Task } from './task.ts';

/** What a client is made from. */
export interface ClientOptions {
  /** Where tasks go. The client does not close it. */
  readonly broker: Broker;
}

const OPTIONS: OptionNames<ClientOptions> = { broker: true };

/** What a client tells. */
export interface ClientEvents {
  /** A task is with the broker. */
  enqueued: [info: TaskInfo];
}

/** A task on its way to the broker. */
export interface EnqueueRequest {
  /** What is enqueued. */
  readonly task: Task;
  /** What is laid over the options of the task. */
  readonly options: TaskOptions;
}

const ENTRY: OptionNames<EnqueueRequest> = { task: true, options: true };

/** Stands before the broker: may change what is enqueued, look at what comes of it, or refuse it by throwing. */
export type ClientMiddleware = (
  request: EnqueueRequest,
  next: (request: EnqueueRequest) => Promise<TaskInfo>,
) => Promise<TaskInfo>;

/**
 * Enqueues tasks.
 *
 * @example
 * ```ts
 * const client = new Client({ broker });
 * await client.enqueue(new Task('email:welcome', { userId: 42 }));
 * ```
 */
export class Client extends EventEmitter<ClientEvents> {
  readonly #broker: Broker;
  #inFlight = 0;
  #whenIdle: (() => void) | undefined;
  #middleware: ClientMiddleware[] = [];
  /** All of the middleware, with the broker inside; undefined if there is none. */
  #outermost: ((request: EnqueueRequest) => Promise<TaskInfo>) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    super();
    requireOptions('Client', options, OPTIONS);
    requireBroker('options.broker', options.broker);
    this.#broker = options.broker;
  }

  /** Puts middleware around `enqueue` and `enqueueMany`; the first one is outermost. */
  use(...middleware: readonly ClientMiddleware[]): this {
    for (const one of middleware) requireFunction('middleware', one);
    this.#middleware = [...this.#middleware, ...middleware];
    this.#outermost = this.#middleware.reduceRight<(request: EnqueueRequest) => Promise<TaskInfo>>(
      (next, one) => async (request) => one(request, next),
      this.#send,
    );
    return this;
  }

  /**
   * Enqueues a task. Options given here are laid over the task's.
   *
   * @throws TypeError or RangeError - an argument is wrong.
   * @throws EscapementError `ERR_TASK_PAYLOAD`, `ERR_TASK_DUPLICATE`, `ERR_TASK_ID_CONFLICT`, `ERR_CLIENT_CLOSED` - it was
   * not enqueued. `ERR_BROKER_UNAVAILABLE` - it may have been; with a `taskId` it can be tried again safely.
   */
  enqueue(task: Task, options: TaskOptions = NO_TASK_OPTIONS): Promise<TaskInfo> {
    try {
      this.#requireOpen('Client.enqueue');
      requireTask('task', task);
      requireTaskOptions('Client.enqueue', options);
      return this.#outermost === undefined && task.check === undefined
        ? this.#sendAtOnce(task, options)
        : this.#whileInFlight(() => (this.#outermost ?? this.#send)({ task, options }));
    } catch (error) {
      return Promise.reject(error); // eslint-disable-line @typescript-eslint/prefer-promise-reject-errors -- what async would do
    }
  }

  /**
   * Enqueues many, with few round trips. Each is taken or refused for itself.
   *
   * @param options - of all of them, laid over those of the tasks; those that an entry has are laid over these.
   * @returns outcomes in the order of the tasks, as of `Promise.allSettled`. Rejects only if the argument is wrong, or the
   * client closed.
   */
  async enqueueMany(
    tasks: readonly (Task | EnqueueRequest)[],
    options: TaskOptions = NO_TASK_OPTIONS,
  ): Promise<PromiseSettledResult<TaskInfo>[]> {
    this.#requireOpen('Client.enqueueMany');
    if (!Array.isArray(tasks)) throw wrongType('tasks', 'an array', tasks);
    requireTaskOptions('Client.enqueueMany', options);
    return this.#whileInFlight(() =>
      this.#outermost === undefined ? this.#together(tasks, options) : this.#eachAlone(tasks, options),
    );
  }

  /** Waits for what is on its way; takes nothing more. The broker stays open. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#whenIdle = resolve;
      if (this.#inFlight === 0) resolve();
    });
    return this.#closing;
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#closing === undefined ? 'open' : 'closed',
      inFlight: this.#inFlight,
      broker: this.#broker,
    }));
  }

  /**
   * Where nothing but the broker is waited for, and the options were required to be right. An async function would cost
   * more than all that is done here.
   */
  #sendAtOnce(task: Task, options: TaskOptions): Promise<TaskInfo> {
    const sent = this.#broker.enqueue(this.#newTask(task, options));
    this.#inFlight++;
    return sent.then(this.#taken, this.#refused);
  }

  readonly #taken = (record: TaskRecord): TaskInfo => {
    this.#landed();
    return this.#told(record);
  };

  readonly #refused = (error: unknown): never => {
    this.#landed();
    throw error;
  };

  async #whileInFlight<T>(work: () => Promise<T>): Promise<T> {
    this.#inFlight++;
    try {
      return await work();
    } finally {
      this.#landed();
    }
  }

  /** What the innermost middleware calls; it may have changed the request. */
  readonly #send = async (request: EnqueueRequest): Promise<TaskInfo> => {
    const prepared = this.#prepare(request);
    return this.#told(await this.#broker.enqueue(prepared instanceof Promise ? await prepared : prepared));
  };

  #eachAlone(
    entries: readonly (Task | EnqueueRequest)[],
    options: TaskOptions,
  ): Promise<PromiseSettledResult<TaskInfo>[]> {
    return Promise.allSettled(
      entries.map(async (entry) => {
        const request = requestOf(entry, options);
        requireRequest(request);
        return this.#outermost === undefined ? this.#send(request) : this.#outermost(request);
      }),
    );
  }

  async #together(
    entries: readonly (Task | EnqueueRequest)[],
    options: TaskOptions,
  ): Promise<PromiseSettledResult<TaskInfo>[]> {
    const prepared = await settleEach(entries, (entry) => this.#prepare(requestOf(entry, options)));
    const ready = prepared.filter((one) => one.status === 'fulfilled').map((one) => one.value);
    const sent = ready.length === 0 ? [] : await this.#broker.enqueueMany(ready);
    let nth = 0;
    return prepared.map((one) => (one.status === 'fulfilled' ? this.#outcomeOf(sent[nth++]) : one));
  }

  #outcomeOf(sent: PromiseSettledResult<TaskRecord> | undefined): PromiseSettledResult<TaskInfo> {
    if (sent === undefined) throw new Error('the broker has answered for fewer tasks than it was given');
    return sent.status === 'fulfilled' ? { status: 'fulfilled', value: this.#told(sent.value) } : sent;
  }

  /** A promise only where there is something to wait for. */
  #prepare(request: EnqueueRequest): NewTask | Promise<NewTask> {
    requireRequest(request);
    const { task, options } = request;
    const checked = task.check?.(task);
    if (checked === undefined) return this.#newTask(task, options);
    return checked.then(() => this.#newTask(task, options));
  }

  /** Only a delay needs to know the time, which takes as long to read as a task to look up. */
  #newTask(task: Task, options: TaskOptions): NewTask {
    const hasDelay = (options.processInMs ?? task.options.processInMs) !== undefined;
    return newTaskOf(task, options, hasDelay ? this.#broker.clock.wallNow() : 0);
  }

  #told(record: TaskRecord): TaskInfo {
    const info = new TaskInfo(record);
    emit(this, 'enqueued', info);
    return info;
  }

  #landed(): void {
    if (--this.#inFlight === 0) this.#whenIdle?.();
  }

  #requireOpen(op: string): void {
    if (this.#closing === undefined) return;
    throw new EscapementError('ERR_CLIENT_CLOSED', 'the client is closed', { op });
  }
}

function requestOf(entry: Task | EnqueueRequest, common: TaskOptions): EnqueueRequest {
  requireObject('an entry of tasks', entry);
  const { task, options = NO_TASK_OPTIONS } = entry as Partial<EnqueueRequest>; // a task has no task
  if (task === undefined) return { task: entry as Task, options: common };
  requireOptions('Client.enqueueMany', entry, ENTRY, 'entry');
  if (common === NO_TASK_OPTIONS) return { task, options };
  requireTaskOptions('Client.enqueueMany', options);
  return { task, options: mergeTaskOptions(common, options) };
}

function requireRequest(request: EnqueueRequest): void {
  requireObject('request', request);
  const { task, options } = request;
  requireTask('task', task);
  requireTaskOptions('Client', options);
}
