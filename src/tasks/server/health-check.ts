import { reportUncaught } from '../../core/report-uncaught.ts';
import { Periodic } from './periodic.ts';
import type { ServerParts } from './server-parts.ts';

/** Tells, every so often, whether the broker answers. */
export class HealthCheck {
  readonly #healthCheck: ((error: unknown) => void) | undefined;
  readonly #pings: Periodic | undefined;

  constructor({ broker, options, timer }: ServerParts) {
    this.#healthCheck = options.healthCheck;
    if (options.healthCheck === undefined) return;
    this.#pings = new Periodic({
      timer,
      intervalMs: options.healthCheckIntervalMs,
      job: async () => {
        await broker.ping();
        this.tell(undefined);
      },
      onError: (error) => {
        this.tell(error);
      },
    });
  }

  start(): void {
    this.#pings?.start();
  }

  /** Somebody has seen that the broker does not answer; or it does. */
  tell(error: unknown): void {
    try {
      this.#healthCheck?.(error);
    } catch (thrown) {
      reportUncaught(thrown);
    }
  }

  async shutdown(): Promise<void> {
    await this.#pings?.shutdown();
  }
}
