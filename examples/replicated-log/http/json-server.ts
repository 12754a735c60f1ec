import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Reply } from '../broker/reply.ts';
import { Query, BadRequest } from './query.ts';

/** A request, taken apart, and the way to answer it. */
export interface Exchange {
  readonly query: Query;
  /** The body, parsed; undefined if there is none. */
  readonly body: unknown;
  readonly reply: Reply;
  /** Calls back when the exchange is over, also because the client hung up. */
  readonly onEnd: (callback: () => void) => void;
}

/** Handlers by method and path: `'GET /fetch'`. One that throws is answered for: 400 or 500. */
export type Routes = Readonly<Record<string, (exchange: Exchange) => unknown>>;

/** An HTTP server on loopback that speaks JSON. */
export class JsonServer {
  readonly #routes: Routes;
  readonly #http: Server;
  #isClosing = false;

  constructor(routes: Routes) {
    this.#routes = routes;
    this.#http = createServer((request, response) => void this.#handle(request, response));
    // A connection that waits for its next request is closed by whoever opened it, or in close().
    this.#http.keepAliveTimeout = 0;
  }

  /** @returns the port, a free one. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject);
      this.#http.listen(0, '127.0.0.1', resolve);
    });
    return (this.#http.address() as AddressInfo).port;
  }

  /** Takes no more connections; resolves when every request is answered. Answer those that wait. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await new Promise((resolve) => this.#http.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const reply: Reply = (status, body) => {
      this.#answer(response, status, body);
    };
    try {
      const url = new URL(request.url ?? '/', 'http://localhost');
      const route = this.#routes[`${request.method ?? ''} ${url.pathname}`];
      if (route === undefined)
        throw new BadRequest(`there is no ${request.method ?? ''} ${url.pathname}`, 404);
      const onEnd = (callback: () => void): void => void response.once('close', callback);
      await route({ query: new Query(url.searchParams), body: parse(await text(request)), reply, onEnd });
    } catch (error) {
      const status = error instanceof BadRequest ? error.status : 500;
      reply(status, { error: error instanceof Error ? error.message : String(error) });
    }
  }

  #answer(response: ServerResponse, status: number, body: object): void {
    if (response.headersSent || response.destroyed) return;
    if (this.#isClosing) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }
}

function parse(body: string): unknown {
  if (body === '') return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new BadRequest('the body is not JSON');
  }
}
