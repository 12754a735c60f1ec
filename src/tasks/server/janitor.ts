import { Periodic } from './periodic.ts';
import type { ServerParts } from './server-parts.ts';

/** Has completed tasks removed when their retention is over; unless the broker does so by itself. */
export class Janitor {
  readonly #rounds: Periodic | undefined;

  constructor({ broker, options, timer, logger }: ServerParts) {
    if (broker.isSelfDriven) return;
    const { queueNames, janitorBatchSize, janitorIntervalMs } = options;
    this.#rounds = new Periodic({
      timer,
      intervalMs: janitorIntervalMs,
      job: async () => {
        while ((await broker.deleteExpired(queueNames, janitorBatchSize)) > 0);
      },
      onError: (error) => {
        logger.warn({ err: error }, 'completed tasks not removed');
      },
    });
  }

  start(): void {
    this.#rounds?.start();
  }

  async shutdown(): Promise<void> {
    await this.#rounds?.shutdown();
  }
}
