import { EventEmitter } from 'node:events';
import type { Clock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { checkOptions, type OptionTable } from '../core/options.ts';
import { requireFunction, requireObject, requireString } from '../core/validate.ts';
import { requireBroker } from './argument-checks.ts';
import type { Broker, TaskBroker, TaskRecord } from './broker/broker.ts';
import { HttpSender, type HttpClientOptions } from './http/http-sender.ts';
import { emit } from './reporting.ts';
import { TaskInfo } from './info.ts';
import {
  mergeTaskOptions,
  newTaskOf,
  NO_TASK_OPTIONS,
  optionsOf,
  requireConsistent,
  requireTaskOptions,
  type TaskOptions,
} from './task-options.ts';
import { requireTask, type EnqueueEntry, type EnqueueRequest, type Task } from './task.ts';

/** Options of a `Client`: a broker in this process, or the URL of the process that has it. */
export type ClientOptions = BrokerClientOptions | HttpClientOptions;

/** Options of a `Client` that enqueues in a broker. */
export interface BrokerClientOptions {
  /** Broker of the tasks. The client does not close it. */
  readonly broker: Broker;
  /** Absent: a client with a URL is one over HTTP, which has no broker. */
  readonly url?: undefined;
}

const OPTIONS = {
  broker: [requireBroker],
  url: [requireString, undefined],
} satisfies OptionTable<BrokerClientOptions>;

/** Events of a client. */
export interface ClientEvents {
  /** A task was enqueued. */
  enqueued: [info: TaskInfo];
}

const ENTRY = {
  task: [requireTask],
  options: [requireObject, undefined],
} satisfies OptionTable<EnqueueEntry>;

/** Wraps the enqueueing of a task: it may change the request, read the result, or throw to reject the request. */
export type ClientMiddleware = (
  request: EnqueueRequest,
  next: (request: EnqueueRequest) => Promise<TaskInfo>,
) => Promise<TaskInfo>;

/**
 * Enqueues tasks: in a broker, or over HTTP in the process that has the broker and serves it by `tasksHandler`.
 *
 * @example
 * ```ts
 * const client = new Client({ broker });
 * await client.enqueue(new Task('email:welcome', { userId: 42 }));
 * ```
 *
 * @example
 * ```ts
 * const client = new Client({ url: 'http://127.0.0.1:8080/admin', headers: { authorization: `Bearer ${token}` } });
 * ```
 */
export class Client extends EventEmitter<ClientEvents> {
  readonly #sender: TaskSender;
  #inFlight = 0;
  #whenIdle: (() => void) | undefined;
  #middleware: ClientMiddleware[] = [];
  /** All middleware, around `#send`; undefined if there is none. */
  #outermost: ((request: EnqueueRequest) => Promise<TaskInfo>) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ClientOptions) {
    super();
    this.#sender = senderOf(options);
  }

  /** Adds middleware around `enqueue` and `enqueueMany`; the first one is outermost. */
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
   * Enqueues a task. Options override those of the task.
   *
   * @throws TypeError or RangeError - an argument is not valid.
   * @throws EscapementError `ERR_TASK_PAYLOAD`, `ERR_TASK_DUPLICATE`, `ERR_TASK_ID_CONFLICT`, `ERR_CLIENT_CLOSED` - the task
   * was not enqueued; nor was it after `ERR_BROKER_REFUSED`, over HTTP. `ERR_BROKER_UNAVAILABLE` - it may have been enqueued; with
   * a `taskId` it is safe to try again.
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
      return Promise.reject(error); // eslint-disable-line @typescript-eslint/prefer-promise-reject-errors -- as an async function
    }
  }

  /**
   * Enqueues tasks with few round trips, over HTTP with one request, unless the client has middleware: then each is enqueued
   * alone. Each succeeds or fails by itself.
   *
   * @param options - for all tasks: they override those of the tasks, and are overridden by those of an entry.
   * @returns outcomes in the order of the tasks, as `Promise.allSettled`. Rejects only if an argument is not valid, or the
   * client is closed.
   */
  async enqueueMany(
    tasks: readonly (Task | EnqueueEntry)[],
    options: TaskOptions = NO_TASK_OPTIONS,
  ): Promise<PromiseSettledResult<TaskInfo>[]> {
    this.#requireOpen('Client.enqueueMany');
    if (!Array.isArray(tasks)) throw wrongType('tasks', 'an array', tasks);
    requireTaskOptions('Client.enqueueMany', options);
    const outermost = this.#outermost;
    return this.#whileInFlight(() =>
      outermost === undefined
        ? this.#together(tasks, options)
        : Promise.allSettled(
            tasks.map(async (entry: Task | EnqueueEntry) => {
              const request = requestOf(entry, options);
              requireRequest(request);
              return outermost(request);
            }),
          ),
    );
  }

  /**
   * Rejects new tasks and waits for those that are being enqueued: over HTTP with their retries, unless the option `signal` ends
   * them. The broker stays open. Idempotent.
   */
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
      ...this.#sender.destination,
    }));
  }

  /** Sends a task whose options have been checked. An async function would cost more than everything that is done here. */
  #sendAtOnce(task: Task, options: TaskOptions): Promise<TaskInfo> {
    const sent = this.#sender.enqueue(task, optionsOf(task, options));
    this.#inFlight++;
    return sent.then(this.#accepted, this.#rejected);
  }

  readonly #accepted = (record: TaskRecord): TaskInfo => {
    this.#landed();
    return this.#report(record);
  };

  readonly #rejected = (error: unknown): never => {
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

  /** The innermost middleware calls it, and may have changed the request. */
  readonly #send = async (request: EnqueueRequest): Promise<TaskInfo> => {
    const prepared = this.#prepare(request);
    const { task, options } = prepared instanceof Promise ? await prepared : prepared;
    return this.#report(await this.#sender.enqueue(task, options));
  };

  /** Returns a request with all options of the task; a promise only if the task has a check. */
  #prepare(request: EnqueueRequest): EnqueueRequest | Promise<EnqueueRequest> {
    requireRequest(request);
    const { task } = request;
    const options = optionsOf(task, request.options);
    requireConsistent(options, this.#sender.clock);
    const checked = task.check?.(task);
    return checked === undefined ? { task, options } : checked.then(() => ({ task, options }));
  }

  async #together(
    entries: readonly (Task | EnqueueEntry)[],
    options: TaskOptions,
  ): Promise<PromiseSettledResult<TaskInfo>[]> {
    const prepared = await settleEach(entries, (entry) => this.#prepare(requestOf(entry, options)));
    const ready = prepared.filter((one) => one.status === 'fulfilled').map((one) => one.value);
    const sent = ready.length === 0 ? [] : await this.#sendMany(ready);
    let nth = 0;
    return prepared.map((one) => (one.status === 'fulfilled' ? this.#outcomeOf(sent[nth++]) : one));
  }

  /** A broker that rejects the whole call, such as one that is closed, has rejected each task. */
  #sendMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return this.#sender
      .enqueueMany(requests)
      .catch((reason: unknown) => requests.map(() => ({ status: 'rejected', reason })));
  }

  #outcomeOf(sent: PromiseSettledResult<TaskRecord> | undefined): PromiseSettledResult<TaskInfo> {
    if (sent === undefined) throw new Error('the broker returned fewer outcomes than it was given tasks');
    return sent.status === 'fulfilled' ? { status: 'fulfilled', value: this.#report(sent.value) } : sent;
  }

  #report(record: TaskRecord): TaskInfo {
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

/**
 * How a client enqueues tasks: in a broker, or in the process that has one. Tasks and options have been checked, and the options are
 * all of the task: see `optionsOf`.
 */
interface TaskSender {
  /** Where the tasks go, for a console. */
  readonly destination: object;
  readonly clock: Clock;
  enqueue(task: Task, options: TaskOptions): Promise<TaskRecord>;
  /** @returns outcomes in the order of the requests. */
  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]>;
}

/** Adds tasks to a broker. */
function brokerSender(broker: TaskBroker): TaskSender {
  const { clock } = broker;
  return {
    destination: { broker },
    clock,
    enqueue: (task, options) => broker.enqueue(newTaskOf(task, options, clock)),
    enqueueMany: (requests) =>
      broker.enqueueMany(requests.map(({ task, options }) => newTaskOf(task, options, clock))),
  };
}

function senderOf(options: ClientOptions): TaskSender {
  requireObject('options', options);
  if (options.url !== undefined) return new HttpSender(options);
  checkOptions('Client', options, OPTIONS);
  return brokerSender(options.broker);
}

function requestOf(entry: Task | EnqueueEntry, common: TaskOptions): EnqueueRequest {
  requireObject('an entry of tasks', entry);
  const { task, options = NO_TASK_OPTIONS } = entry as Partial<EnqueueEntry>; // a Task has no property `task`
  if (task === undefined) return { task: entry as Task, options: common };
  checkOptions('Client.enqueueMany', entry, ENTRY, 'entry');
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

/** As `Promise.allSettled`, but makes no promises if all work is synchronous. */
export async function settleEach<T, R>(
  items: readonly T[],
  work: (item: T) => R | Promise<R>,
): Promise<readonly PromiseSettledResult<R>[]> {
  const started = items.map((item) => {
    try {
      return work(item);
    } catch (error) {
      return Promise.reject<R>(error); // eslint-disable-line @typescript-eslint/prefer-promise-reject-errors -- as an async function
    }
  });
  if (started.some((one) => one instanceof Promise)) return Promise.allSettled(started);
  return (started as R[]).map((value) => ({ status: 'fulfilled', value }));
}
