import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { Registry } from 'prom-client';
import { Controller, type ControllerOptions } from './controller.ts';
import { MetricsServer } from './metrics-server.ts';
import type { Tell } from './news.ts';
import { countNews } from './news-counters.ts';

/** A controller that runs, and its metrics over HTTP. Stop the one, then close the other. */
export class Service {
  readonly controller: Controller;
  readonly #server: MetricsServer;
  #running: Promise<void> | undefined;

  constructor(options: Omit<ControllerOptions, 'metrics'>) {
    const registry = new Registry();
    const count = countNews(registry);
    const tell: Tell = (news) => {
      count(news);
      options.tell(news);
    };
    this.controller = new Controller({ ...options, tell, metrics: prometheusMetrics({ registry }) });
    this.#server = new MetricsServer(registry);
  }

  /** @returns the address of the metrics. */
  async start(port: number): Promise<string> {
    const url = await this.#server.listen(port);
    this.#running = this.controller.run();
    return url;
  }

  /** @returns the files whose retry was still to come. The metrics can still be read. */
  async stop(): Promise<string[]> {
    const left = await this.controller.stop();
    await this.#running;
    return left;
  }

  async close(): Promise<void> {
    await this.#server.close();
  }
}
