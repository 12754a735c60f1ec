import type { ServerState } from '../broker/broker.ts';
import { Periodic } from './periodic.ts';
import type { ServerParts } from './server-parts.ts';

/** asynq's: a server that is gone is not seen any more after ten seconds. */
const INTERVAL_MS = 5_000;
const TTL_MS = 10_000;

/** Shows the server to whoever asks the broker for servers. */
export class Heartbeater {
  readonly #parts: ServerParts;
  readonly #read: () => ServerState;
  readonly #beats: Periodic;

  constructor(parts: ServerParts, read: () => ServerState) {
    const { timer, broker, logger } = parts;
    this.#parts = parts;
    this.#read = read;
    this.#beats = new Periodic({
      timer,
      intervalMs: broker.isSelfDriven ? undefined : INTERVAL_MS,
      job: () => broker.announceServer(read, TTL_MS),
      onError: (error) => {
        logger.warn({ err: error }, 'server not announced');
      },
    });
  }

  start(): void {
    this.#beats.start();
    this.#beats.trigger();
  }

  /** What is shown has changed. */
  refresh(): void {
    this.#beats.trigger();
  }

  async shutdown(): Promise<void> {
    const { broker, logger } = this.#parts;
    await this.#beats.shutdown();
    try {
      await broker.withdrawServer(this.#read().id);
    } catch (error) {
      logger.warn({ err: error }, 'server not withdrawn');
    }
  }
}
