import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TasksHandler } from 'escapement/tasks/http';
import { HttpError, httpErrorOf } from './http-error.ts';
import type { ImageJobs } from './image-jobs.ts';
import { ROUTES, sendJson } from './routes.ts';

/** How long those who are being answered have when the service closes. */
const LAST_ANSWERS_MS = 1_000;
/** An upload that takes longer is cut off. */
const REQUEST_TIMEOUT_MS = 30_000;

/** The service, as seen from the network. */
export class HttpService {
  readonly #jobs: ImageJobs;
  readonly #admin: TasksHandler;
  readonly #maxBytes: number;
  readonly #http: Server;
  /** A connection that is kept alive would keep the server open, too. */
  readonly #closeIdle = (): void => {
    if (!this.#http.listening) this.#http.closeIdleConnections();
  };

  /** @param admin - is asked first; what is none of its paths comes back. */
  constructor(jobs: ImageJobs, admin: TasksHandler, maxBytes: number) {
    this.#jobs = jobs;
    this.#admin = admin;
    this.#maxBytes = maxBytes;
    this.#http = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
      response.once('close', this.#closeIdle);
      this.#admin(request, response, () => void this.#respond(request, response));
    });
  }

  /** @param port - 0: a free one. @returns the address. */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(port, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** Takes nothing more; who is being answered has a moment. */
  async close(): Promise<void> {
    const cut = setTimeout(() => {
      this.#http.closeAllConnections();
    }, LAST_ANSWERS_MS);
    await new Promise((resolve) => {
      this.#http.close(resolve);
    });
    clearTimeout(cut);
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#serve(request, response);
    } catch (error) {
      refuse(response, error);
      request.resume(); // what is left of its body is in the way of its next request
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '/' } = request;
    const [path = '', query = ''] = url.split('?', 2);
    const found = ROUTES.filter((one) => one.path.test(path));
    if (found.length === 0) throw new HttpError(404, 'not found');
    const route = found.find((one) => one.method === method);
    if (route === undefined) throw new HttpError(405, `${method} is not allowed here`);
    const id = route.path.exec(path)?.[1] ?? '';
    const { jobs, maxBytes } = { jobs: this.#jobs, maxBytes: this.#maxBytes };
    await route.action({ request, response, id, query: new URLSearchParams(query), jobs, maxBytes });
  }
}

/** Whoever asked may be gone, or have a part of the answer already. */
function refuse(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return;
  const httpError = httpErrorOf(error);
  if (httpError === undefined) process.emitWarning(error instanceof Error ? error : String(error));
  if (response.headersSent) response.destroy();
  else sendJson(response, httpError?.status ?? 500, { error: httpError?.message ?? 'internal error' });
}
