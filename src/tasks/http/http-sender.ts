import { BackOff } from '../../core/back-off.ts';
import { requireClock, systemClock, type Clock, type ClockTimeout } from '../../core/clock.ts';
import { EscapementError, wrongValue } from '../../core/errors.ts';
import { integer, milliseconds, readOptions, type OptionTable, type Resolved } from '../../core/options.ts';
import { unlessAborted } from '../../core/signal-options.ts';
import { requireRecord, requireSignal, requireString } from '../../core/validate.ts';
import type { TaskRecord } from '../broker/broker.ts';
import type { TaskOptions } from '../task-options.ts';
import type { EnqueueRequest, Task } from '../task.ts';
import {
  ENQUEUE_PATH,
  errorFromJson,
  recordFromJson,
  newTaskToJson,
  type OutcomeJson,
} from './enqueue-json.ts';
import { credentialsOf, firstLine, RemoteApi, requireHttpUrl, type TextResponse } from './http-requests.ts';
import { HEADER_VALUE } from './http-error.ts';

/** Headers of requests: `{ authorization: 'Bearer …' }`. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** Options of a `Client` that enqueues over HTTP, in the process that serves its broker by `tasksHandler`. */
export interface HttpClientOptions {
  /**
   * Where the handler is mounted, without `/api`. A user and a password in it are sent as Basic credentials.
   *
   * @example 'https://jobs.example/admin'
   */
  readonly url: string | URL;
  /**
   * Headers of every request, or a function that returns them, which is called before each attempt. Its errors reject the call.
   *
   * @default none
   * @example { authorization: `Bearer ${token}` }
   */
  readonly headers?: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>) | undefined;
  /** How long an attempt waits for the answer, in milliseconds. At least 1. @default 10_000 */
  readonly timeoutMs?: number | undefined;
  /**
   * How often a request is tried again if there was no connection, so that nothing was sent: after 100 ms, then twice as long each
   * time, up to 10 s; less a random part of up to a half. A request that was sent is not tried again.
   *
   * @default 5: for 3.1 s at most, and the time of the attempts
   */
  readonly maxRetries?: number | undefined;
  /** Ends all requests when it fires: they reject with its reason, and their tasks may have been enqueued. @default none */
  readonly signal?: AbortSignal | undefined;
  /** Time of timeouts and of the delays between attempts. @default systemClock */
  readonly clock?: Clock | undefined;
}

const OPTIONS = {
  url: [requireHttpUrl],
  headers: [requireHeaders, undefined],
  timeoutMs: [milliseconds(1), 10_000],
  maxRetries: [integer(0), 5],
  signal: [requireSignal, undefined],
  clock: [requireClock, systemClock],
} satisfies OptionTable<HttpClientOptions>;

/** Codes of a connection that was not made, where the error does not name the system call. */
const NOT_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** Enqueues tasks over HTTP. A request whose answer is lost may have enqueued its tasks, so it is not sent again. */
export class HttpSender {
  readonly #options: Resolved<HttpClientOptions, typeof OPTIONS>;
  readonly #api: RemoteApi;
  /** Headers for the credentials in the URL. */
  readonly #credentials: RequestHeaders;
  /** One for each pending call, which it ends. */
  readonly #pending = new Set<AbortController>();

  constructor(options: HttpClientOptions) {
    this.#options = readOptions('Client', options, OPTIONS);
    const url = new URL(this.#options.url);
    this.#api = new RemoteApi(url);
    this.#credentials = credentialsOf(url);
  }

  get destination(): object {
    return { url: this.#api.name };
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  async enqueue(task: Task, options: TaskOptions): Promise<TaskRecord> {
    const [outcome] = await this.#enqueue([{ task, options }], 'Client.enqueue');
    if (outcome?.status === 'fulfilled') return outcome.value;
    throw outcome?.reason;
  }

  enqueueMany(requests: readonly EnqueueRequest[]): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    return this.#enqueue(requests, 'Client.enqueueMany');
  }

  /** Resolves also if the whole request has failed: then every task has. */
  async #enqueue(
    requests: readonly EnqueueRequest[],
    op: string,
  ): Promise<readonly PromiseSettledResult<TaskRecord>[]> {
    try {
      const response = await this.#send(requests.map(newTaskToJson));
      if (response.status !== 200) throw this.#failure(response, op);
      return this.#outcomesOf(response.text, requests, op);
    } catch (reason) {
      return requests.map(() => ({ status: 'rejected', reason }));
    }
  }

  async #send(tasks: readonly object[]): Promise<TextResponse> {
    const body = JSON.stringify({ tasks });
    const controller = this.#begin();
    const backOff = new BackOff();
    try {
      for (let retries = 0; ; retries++) {
        const response = await this.#attempt(body, controller.signal);
        if (!isUnsent(response) || retries === this.#options.maxRetries) return response;
        await this.#pause(backOff.next(), controller.signal);
      }
    } finally {
      this.#end(controller);
    }
  }

  async #attempt(body: string, signal: AbortSignal): Promise<TextResponse> {
    const { clock, timeoutMs } = this.#options;
    const headers = await unlessAborted(signal, this.#headers());
    return this.#api.send({ method: 'POST', path: ENQUEUE_PATH, headers, body, signal, timeoutMs, clock });
  }

  async #headers(): Promise<Headers> {
    const { headers = {} } = this.#options;
    const given = typeof headers === 'function' ? await headers() : headers;
    requireHeaders('the result of headers', given);
    const all = new Headers(this.#credentials);
    for (const [name, value] of Object.entries(given)) all.set(name, value);
    return all;
  }

  async #pause(pauseMs: number, signal: AbortSignal): Promise<void> {
    let timeout: ClockTimeout | undefined;
    const over = new Promise<void>((resolve) => {
      timeout = this.#options.clock.setTimeout(resolve, pauseMs);
    });
    try {
      await unlessAborted(signal, over);
    } finally {
      timeout?.cancel();
    }
  }

  /** One listener for all calls, and only while there are any: Node warns of more than ten on a signal. */
  #begin(): AbortController {
    const { signal } = this.#options;
    signal?.throwIfAborted();
    if (this.#pending.size === 0) signal?.addEventListener('abort', this.#abort);
    const controller = new AbortController();
    this.#pending.add(controller);
    return controller;
  }

  #end(controller: AbortController): void {
    this.#pending.delete(controller);
    if (this.#pending.size === 0) this.#options.signal?.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => {
    for (const controller of this.#pending) controller.abort(this.#options.signal?.reason);
  };

  #outcomesOf(
    text: string,
    requests: readonly EnqueueRequest[],
    op: string,
  ): readonly PromiseSettledResult<TaskRecord>[] {
    try {
      const { outcomes } = JSON.parse(text) as { readonly outcomes: readonly OutcomeJson[] };
      if (outcomes.length !== requests.length) throw wrongValue('outcomes', 'one for each task', outcomes);
      return requests.map(({ task }, nth) => {
        const outcome = outcomes[nth] as OutcomeJson;
        return 'task' in outcome
          ? { status: 'fulfilled', value: recordFromJson(outcome.task, task.payload) }
          : { status: 'rejected', reason: errorFromJson(outcome.error, op) };
      });
    } catch (cause) {
      throw new EscapementError('ERR_BROKER_REFUSED', this.#api.notTheApi(), { op, cause });
    }
  }

  #failure(response: TextResponse, op: string): EscapementError {
    const { status, text } = response;
    if (status === undefined) {
      const { cause } = response;
      return new EscapementError('ERR_BROKER_UNAVAILABLE', this.#api.unreachable(text), { op, cause });
    }
    const code = status >= 500 ? 'ERR_BROKER_UNAVAILABLE' : 'ERR_BROKER_REFUSED';
    const { name } = this.#api;
    const isOfApi = status >= 300 && status !== 404;
    const message = isOfApi
      ? `${name}: ${firstLine(text) || 'the request is refused'}`
      : `there is no tasks API at ${name}`;
    return new EscapementError(code, `${message} (HTTP ${status})`, { op });
  }
}

/** The error of a `fetch` has the reason in its cause. */
function isUnsent(response: TextResponse): boolean {
  return response.status === undefined && isOfConnecting((response.cause as Error).cause);
}

function isOfConnecting(error: unknown): boolean {
  const { errors, syscall, code = '' } = (error ?? {}) as NodeJS.ErrnoException & Partial<AggregateError>;
  // A host with several addresses: an error for each.
  return errors?.every(isOfConnecting) ?? (syscall === 'connect' || NOT_CONNECTED.includes(code));
}

function requireHeaders(argument: string, value: unknown): void {
  if (typeof value === 'function') return;
  requireRecord(argument, "{ authorization: 'Bearer …' }", value);
  for (const [name, text] of Object.entries(value as Record<string, unknown>)) {
    requireString(`${argument}.${name}`, text);
    // The value may be a secret, so no message has it.
    if (!HEADER_NAME.test(name) || !HEADER_VALUE.test(text)) {
      throw wrongValue(`${argument}.${name}`, 'a header of visible Latin-1 characters', '***');
    }
  }
}
