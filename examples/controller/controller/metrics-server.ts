import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

/** What Prometheus scrapes: `GET /metrics`. */
export class MetricsServer {
  readonly #registry: Registry;
  readonly #http: Server;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#http = createServer((request, response) => {
      if (request.method === 'GET' && request.url === '/metrics') void this.#answer(response);
      else response.writeHead(404).end('there is only GET /metrics\n');
    });
  }

  /** @param port - 0: a free one. @returns the address of the metrics. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}/metrics`;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#http.close(resolve);
      this.#http.closeAllConnections();
    });
  }

  async #answer(response: ServerResponse): Promise<void> {
    try {
      const text = await this.#registry.metrics();
      response.setHeader('content-type', this.#registry.contentType).end(text);
    } catch (error) {
      response.writeHead(500).end(`${String(error)}\n`);
    }
  }
}
