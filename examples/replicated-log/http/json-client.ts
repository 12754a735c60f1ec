import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** An answer, whatever its status. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** A client of one server on this machine, over connections that it keeps. */
export class JsonClient {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number) {
    this.#port = port;
  }

  get(path: string, signal?: AbortSignal): Promise<JsonAnswer> {
    return this.#send('GET', path, undefined, signal);
  }

  post(path: string, body?: object, signal?: AbortSignal): Promise<JsonAnswer> {
    return this.#send('POST', path, body, signal);
  }

  /** Hangs up. */
  close(): void {
    this.#agent.destroy();
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    signal: AbortSignal | undefined,
  ): Promise<JsonAnswer> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: this.#port, agent: this.#agent, method, path };
      request(signal === undefined ? options : { ...options, signal }, resolve)
        .once('error', reject)
        .end(body === undefined ? undefined : JSON.stringify(body));
    });
    return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) as unknown };
  }
}

/** The body of an answer, which must be 200. */
export function bodyOf({ status, body }: JsonAnswer): unknown {
  if (status === 200) return body;
  throw new Error(`answer ${status}: ${JSON.stringify(body)}`);
}
