import { EventEmitter } from 'node:events';
import { EscapementError } from '../core/errors.ts';
import { requireFunction, requireObject } from '../core/validate.ts';
import type { Broker, NewTask, TaskRecord } from './broker/broker.ts';
import { requireBroker } from './broker/require-broker.ts';
import { newTaskOf } from './new-task.ts';
import { tell } from './tell.ts';
import { taskInfoOf, type TaskInfo } from './task-info.ts';
import { requireTaskOptions, type TaskOptions } from './task-options.ts';
import { requireTask, type Task } from './task.ts';

/** What a client is made from. */
export interface ClientOptions {
  /** Where tasks go. The client does not close it. */
  readonly broker: Broker;
}

/** What a client tells. */
export interface ClientEvents {
  enqueued: [info: TaskInfo];
}

/** A task on its way to the broker. */
export interface EnqueueRequest {
  readonly task: Task;
  readonly options: TaskOptions;
}

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
  #enqueue: (request: EnqueueRequest) => Promise<TaskInfo>;
  #middleware: ClientMiddleware[] = [];
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    super();
    requireObject('options', options);
    requireBroker('options.broker', options.broker);
    this.#broker = options.broker;
    this.#enqueue = (request) => this.#send(request);
  }

  /** Puts middleware around `enqueue` and `enqueueMany`; the first one is outermost. */
  use(...middleware: readonly ClientMiddleware[]): this {
    for (const one of middleware) requireFunction('middleware', one);
    this.#middleware = [...this.#middleware, ...middleware];
    this.#enqueue = this.#middleware.reduceRight<(request: EnqueueRequest) => Promise<TaskInfo>>(
      (next, one) => async (request) => one(request, next),
      (request) => this.#send(request),
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
  enqueue(task: Task, options: TaskOptions = {}): Promise<TaskInfo> {
    return this.#tracked(this.#checked({ task, options }));
  }

  /**
   * Enqueues many, with few round trips. Each is taken or refused for itself.
   *
   * @returns outcomes in the order of the tasks, as of `Promise.allSettled`. Rejects only if the argument is wrong, or the
   * client closed.
   */
  async enqueueMany(tasks: readonly (Task | EnqueueRequest)[]): Promise<PromiseSettledResult<TaskInfo>[]> {
    this.#requireOpen();
    const requests = tasks.map(requestOf);
    return this.#tracked(this.#middleware.length > 0 ? this.#eachAlone(requests) : this.#together(requests));
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

  async #checked(request: EnqueueRequest): Promise<TaskInfo> {
    this.#requireOpen();
    requireRequest(request);
    return this.#enqueue(request);
  }

  async #send(request: EnqueueRequest): Promise<TaskInfo> {
    requireRequest(request);
    if (request.task.check !== undefined) await request.task.check();
    return this.#told(await this.#broker.enqueue(this.#newTask(request)));
  }

  #eachAlone(requests: readonly EnqueueRequest[]): Promise<PromiseSettledResult<TaskInfo>[]> {
    return Promise.allSettled(requests.map((request) => this.#checked(request)));
  }

  async #together(requests: readonly EnqueueRequest[]): Promise<PromiseSettledResult<TaskInfo>[]> {
    const prepared = await Promise.allSettled(requests.map((request) => this.#prepare(request)));
    const good = prepared.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value);
    const outcomes = good.length === 0 ? [] : await this.#broker.enqueueMany(good);
    let at = 0;
    return prepared.map((outcome) => {
      const sent = outcome.status === 'fulfilled' ? outcomes[at++] : outcome;
      if (sent === undefined) throw new Error('the broker has answered for fewer tasks than it was given');
      return sent.status === 'fulfilled' ? { status: 'fulfilled', value: this.#told(sent.value) } : sent;
    });
  }

  async #prepare(request: EnqueueRequest): Promise<NewTask> {
    requireRequest(request);
    if (request.task.check !== undefined) await request.task.check();
    return this.#newTask(request);
  }

  #newTask({ task, options }: EnqueueRequest): NewTask {
    return newTaskOf(task, options, this.#broker.clock.wallNow());
  }

  #told(record: TaskRecord): TaskInfo {
    const info = taskInfoOf(record);
    tell(this, 'enqueued', info);
    return info;
  }

  async #tracked<R>(promise: Promise<R>): Promise<R> {
    this.#inFlight++;
    try {
      return await promise;
    } finally {
      if (--this.#inFlight === 0) this.#whenIdle?.();
    }
  }

  #requireOpen(): void {
    if (this.#closing === undefined) return;
    throw new EscapementError('ERR_CLIENT_CLOSED', 'the client is closed', { op: 'Client.enqueue' });
  }
}

function requestOf(entry: Task | EnqueueRequest): EnqueueRequest {
  const { task, options = {} } = entry as Partial<EnqueueRequest>; // a task has no task

  return task === undefined ? { task: entry as Task, options: {} } : { task, options };
}

function requireRequest({ task, options }: EnqueueRequest): void {
  requireTask('task', task);
  requireTaskOptions(options);
}
