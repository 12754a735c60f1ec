import { Periodic } from './periodic.ts';
import type { ServerParts } from './server-parts.ts';

/** Has tasks moved to where they are processed when they are due; unless the broker does so by itself. */
export class Forwarder {
  readonly #checks: Periodic | undefined;

  constructor({ broker, options, timer, logger }: ServerParts) {
    if (broker.isSelfDriven) return;
    this.#checks = new Periodic({
      timer,
      intervalMs: options.delayedTaskCheckIntervalMs,
      job: async () => {
        while ((await broker.forward(options.queueNames)) > 0);
      },
      onError: (error) => {
        logger.warn({ err: error }, 'due tasks not forwarded');
      },
    });
  }

  start(): void {
    this.#checks?.start();
  }

  async shutdown(): Promise<void> {
    await this.#checks?.shutdown();
  }
}
