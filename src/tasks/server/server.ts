import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError } from '../../core/errors.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import type { ServerHead } from '../broker/broker.ts';
import { callable, type Handler, type ServeMux } from '../handler.ts';
import { settledWithin, UNANSWERED_MS } from '../timed-work.ts';
import type { ServerEvents } from './reports.ts';
import { ServerComponents } from './server-components.ts';
import { resolveServerOptions, type ResolvedServerOptions, type ServerOptions } from './server-options.ts';

/**
 * - `new`: not started yet.
 * - `active`: takes tasks.
 * - `stopped`: takes no more tasks; running tasks go on.
 * - `closed`: shutting down, or shut down.
 */
export type ServerStatus = 'new' | 'active' | 'stopped' | 'closed';

/** Windows has no SIGTSTP. */
const STOP_SIGNALS: readonly NodeJS.Signals[] = process.platform === 'win32' ? [] : ['SIGTSTP'];
const END_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];

/**
 * Takes tasks from queues and passes them to a handler, at least once: a task is handled again if its worker died, its lease was
 * lost, or its run was interrupted by a shutdown.
 *
 * An active server keeps the process alive.
 *
 * @example
 * ```ts
 * const server = new Server({ broker, concurrency: 10, queues: { critical: 6, default: 3, low: 1 } });
 * server.on('archived', ({ taskId, error }) => console.error(taskId, error));
 * await server.run(async (task, { signal }) => sendWelcome(task.json(), { signal })); // until SIGTERM
 * ```
 */
export class Server extends EventEmitter<ServerEvents> {
  /** Unique among the servers of the broker. */
  readonly id = randomUUID();
  readonly #options: ResolvedServerOptions;
  #status: ServerStatus = 'new';
  #starting: Promise<void> | undefined;
  #startedAtMs = 0;
  #components: ServerComponents | undefined;
  #closing: Promise<void> | undefined;
  #notifyClosing: () => void = () => undefined;
  /** Resolves when the shutdown begins. */
  readonly #whenClosing = new Promise<void>((resolve) => {
    this.#notifyClosing = resolve;
  });

  /** @throws TypeError or RangeError - an option has a wrong type or value. */
  constructor(options: ServerOptions) {
    super();
    this.#options = resolveServerOptions(options);
  }

  /** Current status. */
  get status(): ServerStatus {
    return this.#status;
  }

  /** Number of tasks that are being handled, or whose outcome is being written. */
  get activeCount(): number {
    return this.#components?.runs.size ?? 0;
  }

  /**
   * Starts taking tasks.
   *
   * @throws TypeError - `handler` is not a function or a mux.
   * @throws EscapementError `ERR_SERVER_STATE` - the server was started before. `ERR_SERVER_CLOSED` - it was shut down. Also what
   * `ping` rejects with; then `start` can be called again.
   */
  async start(handler: Handler | ServeMux): Promise<void> {
    const called = callable(handler);
    if (this.#status === 'closed') throw closedError();
    if (this.#starting !== undefined) {
      const message = `the server was started before, and is ${this.#status}`;
      throw new EscapementError('ERR_SERVER_STATE', message, { op: 'Server.start' });
    }
    this.#starting = this.#start(called);
    try {
      await this.#starting;
    } catch (error) {
      this.#starting = undefined;
      throw error;
    }
  }

  /** Takes no more tasks. Running tasks go on, until `shutdown`. Does nothing if the server is not active. */
  stop(): void {
    if (this.#status !== 'active') return;
    this.#status = 'stopped';
    this.#components?.stop();
  }

  /**
   * Stops, and waits up to `shutdownTimeoutMs` for running tasks. Those that are not done then are interrupted, have `graceMs` to
   * settle, and return to the head of their queue. If no task runs, a broker that does not answer delays this by two seconds at
   * most. Idempotent. Never rejects.
   */
  shutdown(): Promise<void> {
    this.#closing ??= this.#shutdown();
    return this.#closing;
  }

  /** `shutdown()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  /**
   * Starts the server, and shuts it down at SIGTERM or SIGINT; at SIGTSTP it takes no more tasks. Resolves when the server is shut
   * down, also by `shutdown`.
   *
   * @throws the errors of `start`.
   */
  async run(handler: Handler | ServeMux): Promise<void> {
    if (this.#status === 'closed') throw closedError();
    let end: () => void = () => undefined;
    const signalled = new Promise<void>((resolve) => {
      end = resolve;
    });
    const stop = (): void => {
      this.stop();
    };
    // A second signal does nothing: a terminal and a process manager often send two.
    for (const signal of END_SIGNALS) process.on(signal, end);
    for (const signal of STOP_SIGNALS) process.on(signal, stop);
    const ending = Promise.race([signalled, this.#whenClosing]);
    const started = this.start(handler).catch((error: unknown) => {
      if (this.#status !== 'closed') throw error; // else the server was shut down before it had started
    });
    try {
      await Promise.race([started, ending]); // a start may wait for a broker that does not answer
      await ending;
      await this.shutdown();
    } finally {
      for (const signal of END_SIGNALS) process.off(signal, end);
      for (const signal of STOP_SIGNALS) process.off(signal, stop);
    }
  }

  /** Resolves when the broker answers. */
  ping(): Promise<void> {
    return this.#options.broker.ping();
  }

  /** @internal Printed by a console. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      state: this.#status,
      concurrency: this.#options.concurrency,
      active: this.activeCount,
      queues: this.#options.queues,
    }));
  }

  async #start(handler: Handler): Promise<void> {
    await this.ping();
    const { broker, limits } = this.#options;
    for (const [queue, limitsOfQueue] of Object.entries(limits)) await broker.setLimits(queue, limitsOfQueue);
    if (this.#status === 'closed') throw closedError();
    this.#components = new ServerComponents(this.#options, handler, this, () => this.#head());
    this.#status = 'active';
    this.#startedAtMs = this.#options.broker.clock.wallNow();
    await this.#components.start();
  }

  async #shutdown(): Promise<void> {
    this.#status = 'closed';
    this.#notifyClosing();
    await this.#startEnded();
    await this.#components?.shutdown();
  }

  /** Waits for a pending start. A broker that does not answer it delays the shutdown no longer than it may: the start then ends by itself. */
  async #startEnded(): Promise<void> {
    if (this.#starting === undefined) return;
    const timer = new SystemTimer({ name: 'server-shutdown', clock: this.#options.broker.clock });
    await settledWithin(timer, UNANSWERED_MS, this.#starting); // the caller of start receives an error
    timer.close();
  }

  #head(): ServerHead {
    const { concurrency, queues, strictPriority } = this.#options;
    return {
      id: this.id,
      host: hostname(),
      pid: process.pid,
      concurrency,
      queues,
      strictPriority,
      status: this.#status === 'new' ? 'active' : this.#status,
      startedAtMs: this.#startedAtMs,
    };
  }
}

function closedError(): EscapementError {
  return new EscapementError('ERR_SERVER_CLOSED', 'the server was shut down', { op: 'Server.start' });
}
