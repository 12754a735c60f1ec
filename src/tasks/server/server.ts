import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError, wrongType } from '../../core/errors.ts';
import type { ServerState } from '../broker/broker.ts';
import { isServeMux, type ServeMux } from '../serve-mux.ts';
import type { Handler } from './handler.ts';
import { serverClosed } from './interruptions.ts';
import { listenToSignals } from './run-on-signals.ts';
import { ServerComponents } from './server-components.ts';
import type { ServerEvents } from './server-events.ts';
import { resolveServerOptions, type ResolvedServerOptions, type ServerOptions } from './server-options.ts';

/** `new`: not started yet. `stopped`: takes nothing more, what runs goes on. `closed`: shuts down, or has. */
export type ServerStatus = 'new' | 'active' | 'stopped' | 'closed';

/**
 * Takes tasks from queues and has them handled. At least once: a task whose worker was gone, whose lease was lost, or whose
 * run was interrupted by a shutdown is handled again.
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
  /** Names it among the servers of the broker. */
  readonly id = randomUUID();
  readonly #options: ResolvedServerOptions;
  #status: ServerStatus = 'new';
  #starting: Promise<void> | undefined;
  #startedAtMs = 0;
  #components: ServerComponents | undefined;
  #closing: Promise<void> | undefined;
  #tellClosing: () => void = () => undefined;
  /** Resolves when the shutdown begins. */
  readonly #whenClosing = new Promise<void>((resolve) => {
    this.#tellClosing = resolve;
  });

  /** @throws TypeError or RangeError - an option is wrong. */
  constructor(options: ServerOptions) {
    super();
    this.#options = resolveServerOptions(options);
  }

  /** What it does now. */
  get status(): ServerStatus {
    return this.#status;
  }

  /** Tasks that are being handled, or whose outcome is being written. */
  get activeCount(): number {
    return this.#components?.runs.size ?? 0;
  }

  /**
   * Starts taking tasks.
   *
   * @throws TypeError - `handler` is not a function or a mux.
   * @throws EscapementError `ERR_SERVER_STATE` - it was started before. `ERR_SERVER_CLOSED` - it was shut down. What `ping`
   * rejects with: then it can be started again.
   */
  async start(handler: Handler | ServeMux): Promise<void> {
    const called = callable(handler);
    if (this.#status === 'closed') throw closedError('start');
    if (this.#starting !== undefined) throw startedError(this.#status);
    this.#starting = this.#start(called);
    try {
      await this.#starting;
    } catch (error) {
      this.#starting = undefined;
      throw error;
    }
  }

  /** Takes nothing more. What runs goes on, until `shutdown`. Does nothing if it is not active. */
  stop(): void {
    if (this.#status !== 'active') return;
    this.#status = 'stopped';
    this.#components?.stop();
  }

  /**
   * Stops, and waits `shutdownTimeoutMs` for what runs. What is not done then is interrupted, has `graceMs` to settle, and
   * goes back to the head of its queue. If nothing runs, a broker that does not answer holds this up for two seconds at most.
   * Idempotent. Never rejects.
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
   * Starts, and shuts down at SIGTERM or SIGINT; at SIGTSTP it takes nothing more. Resolves when it is over, also if
   * somebody else shuts it down.
   *
   * @throws as of `start`.
   */
  async run(handler: Handler | ServeMux): Promise<void> {
    let end: () => void = () => undefined;
    const signalled = new Promise<void>((resolve) => {
      end = resolve;
    });
    const removeListeners = listenToSignals({
      end,
      stop: () => {
        this.stop();
      },
    });
    try {
      await this.start(handler);
      await Promise.race([signalled, this.#whenClosing]);
      await this.shutdown();
    } finally {
      removeListeners();
    }
  }

  /** Resolves when the broker answers. */
  ping(): Promise<void> {
    return this.#options.broker.ping();
  }

  /** @internal What a console prints. */
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
    if (this.#mustClose()) throw closedError('start');
    this.#components = new ServerComponents(this.#options, handler, this, () => this.#state());
    this.#status = 'active';
    this.#startedAtMs = this.#options.broker.clock.wallNow();
    await this.#components.start();
  }

  async #shutdown(): Promise<void> {
    this.#status = 'closed';
    this.#tellClosing();
    try {
      await this.#starting;
    } catch {
      // Whoever has started it was told.
    }
    await this.#components?.shutdown();
  }

  /** A call, because it may change while it is awaited, and the compiler does not know. */
  #mustClose(): boolean {
    return this.#status === 'closed';
  }

  #state(): ServerState {
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
      workers: this.#components?.workers() ?? [],
    };
  }
}

function callable(handler: Handler | ServeMux): Handler {
  if (typeof handler === 'function') return handler;
  if (isServeMux(handler)) return handler.handler;
  throw wrongType('handler', 'a function or a ServeMux', handler);
}

function startedError(status: ServerStatus): EscapementError {
  return new EscapementError('ERR_SERVER_STATE', `the server was started before: it is ${status}`, {
    op: 'Server.start',
  });
}

function closedError(operation: string): EscapementError {
  return new EscapementError('ERR_SERVER_CLOSED', serverClosed().message, { op: `Server.${operation}` });
}
