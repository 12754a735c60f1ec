import { reportUncaught } from '../../../core/report-uncaught.ts';
import type { RedisHealth } from './connection-options.ts';
import type { RedisClient } from './make-client.ts';
import { brokerClosed, unavailable, withoutPassword } from './redis-errors.ts';

/** Somebody who waits for the connection. */
interface Waiter {
  readonly op: string;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly timeout: NodeJS.Timeout;
}

/**
 * Follows what a client says of its connection, tells of each change once, and lets operations wait for it.
 *
 * A client says more than anybody wants to know: an error and an end for every attempt that fails, and which of them first
 * depends on how.
 */
export class ConnectionWatch {
  readonly #client: RedisClient;
  readonly #onHealth: ((health: RedisHealth) => void) | undefined;
  readonly #waiters = new Set<Waiter>();
  #health: RedisHealth = { state: 'connecting' };
  /** Why it is not there: the first error of the last attempt that had one. What comes after it is that there is nothing. */
  #lastError: Error | undefined;
  #hasFailed = false;

  readonly #onConnecting = (): void => {
    this.#hasFailed = false;
  };
  readonly #onReady = (): void => {
    // ioredis 5 says so too of a connection that it has ended because of a wrong password.
    if (!this.isReady) return;
    this.#lastError = undefined;
    this.#hasFailed = false;
    this.#become({ state: 'ready' });
    for (const waiter of this.#waiters) this.#settle(waiter).resolve();
  };
  readonly #onError = (error: Error): void => {
    if (!this.#hasFailed) this.#lastError = withoutPassword(error);
    this.#hasFailed = true;
    if (!this.isReady) this.#lost();
  };
  readonly #onClose = (): void => {
    this.#lost();
  };

  constructor(client: RedisClient, onHealth: ((health: RedisHealth) => void) | undefined) {
    this.#client = client;
    this.#onHealth = onHealth;
    client.on('connecting', this.#onConnecting);
    client.on('ready', this.#onReady);
    client.on('error', this.#onError);
    client.on('close', this.#onClose);
    client.on('end', this.#onClose);
    if (this.isReady) this.#health = { state: 'ready' };
  }

  get health(): RedisHealth {
    return this.#health;
  }

  /**
   * As the client sees it: a little before it says so. One that is ending is not ready any more, although its status is: it
   * would refuse every command in no time at all, and who tries again at once would never let it end.
   */
  get isReady(): boolean {
    const client = this.#client;
    return client.status === 'ready' && ('stream' in client ? client.stream.writable : true);
  }

  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - it is not there within the limit. */
  untilReady(op: string, limitMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        this.#settle(waiter).reject(
          unavailable(op, this.#lastError ?? new Error(`no answer for ${limitMs} ms`)),
        );
      }, limitMs);
      const waiter: Waiter = { op, resolve, reject, timeout };
      this.#waiters.add(waiter);
    });
  }

  /** Nobody is told anything any more, and who waits is told that it is over. */
  close(): void {
    const client = this.#client;
    client.off('connecting', this.#onConnecting);
    client.off('ready', this.#onReady);
    client.off('error', this.#onError);
    client.off('close', this.#onClose);
    client.off('end', this.#onClose);
    for (const waiter of this.#waiters) this.#settle(waiter).reject(brokerClosed(waiter.op));
  }

  #settle(waiter: Waiter): Waiter {
    clearTimeout(waiter.timeout);
    this.#waiters.delete(waiter);
    return waiter;
  }

  #lost(): void {
    if (this.#health.state === 'unavailable') return;
    this.#become({ state: 'unavailable', cause: this.#lastError ?? new Error('the connection was closed') });
  }

  #become(health: RedisHealth): void {
    if (health.state === this.#health.state) return;
    this.#health = health;
    try {
      this.#onHealth?.(health);
    } catch (error) {
      reportUncaught(error);
    }
  }
}
