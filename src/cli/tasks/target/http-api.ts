import { setMaxListeners } from 'node:events';
import { HOUR_MS } from '../../../core/units.ts';
import { apiAt, fetchText, firstLine } from '../../../tasks/http/http-requests.ts';
import { EscapementError } from '../../../core/errors.ts';
import { HttpError } from '../../../tasks/http/http-error.ts';

/** How long a response may take, in milliseconds; asynqmon's server has the same limit. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** For operations on all tasks of a state, in milliseconds; more than `fetch` waits by itself. */
export const MAX_TIMEOUT_MS = HOUR_MS;

/** Texts of servers for an unknown path; the API names the queue or task that it has not found. */
const NO_PATH = /^(?:not found|404 page not found|)$/i;

/** The error if there is no response, or not one of the API: other requests will fail too. */
export function unreachable(message: string, cause?: unknown): EscapementError {
  return new EscapementError('ERR_BROKER_UNAVAILABLE', message, { cause });
}

/** asynqmon's REST interface, as `tasksHandler` serves it. */
export class HttpApi {
  /** Where it is, for messages. */
  readonly name: string;
  readonly #root: string;
  protected readonly headers: Readonly<Record<string, string>>;
  protected readonly signal: AbortSignal;
  readonly #timeoutMs: number;

  /** @param url - where the handler is mounted; its user and password are not used. @param signal - aborts requests. */
  constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    timeoutMs = DEFAULT_TIMEOUT_MS,
  ) {
    const { name, root } = apiAt(url);
    this.name = name;
    this.#root = root;
    this.headers = headers;
    this.signal = signal;
    setMaxListeners(0, signal); // one for each request in progress
    this.#timeoutMs = timeoutMs;
  }

  /** The error for a response that is not one of the API. */
  notTheApi(): EscapementError {
    return unreachable(`${this.name} does not respond as the tasks API. Is it mounted there?`);
  }

  /**
   * Returns the JSON of a response; undefined if it has none.
   *
   * @throws HttpError - the API has refused the request; 502 if it would refuse any: a dashboard answers that to its own client, whose
   * login is another one. EscapementError `ERR_BROKER_UNAVAILABLE` - there is no response of the API.
   */
  async request(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { timeoutMs = this.#timeoutMs, body }: { readonly timeoutMs?: number; readonly body?: unknown } = {},
  ): Promise<unknown> {
    const { status, text } = await this.#fetch(method, path, timeoutMs, body);
    if (status === 204) return undefined;
    if (status !== 200) {
      const isOfRequest = status >= 400 && status < 500 && status !== 401 && status !== 403;
      throw new HttpError(isOfRequest ? status : 502, `${this.#reason(text, status)} (HTTP ${status})`);
    }
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw this.notTheApi();
    }
  }

  async #fetch(
    method: string,
    path: string,
    timeoutMs: number,
    body: unknown,
  ): Promise<{ readonly status: number; readonly text: string }> {
    this.signal.throwIfAborted();
    const hasBody = body !== undefined;
    const headers = {
      accept: 'application/json',
      ...(hasBody && { 'content-type': 'application/json' }),
      ...this.headers,
    };
    const request = { method, headers, ...(hasBody && { body: JSON.stringify(body) }) };
    const response = await fetchText(`${this.#root}${path}`, request, this.signal, timeoutMs);
    if (response.status !== undefined) return response;
    this.signal.throwIfAborted();
    throw unreachable(`cannot reach ${this.name}: ${response.text}`);
  }

  #reason(text: string, status: number): string {
    if (status === 404 && NO_PATH.test(firstLine(text))) return `there is no tasks API at ${this.name}`;
    if (status >= 300 && status < 400) return `${this.name} redirects to another URL`;
    if (status === 401 || status === 403) return `${this.name} refuses: ${firstLine(text) || 'not allowed'}`;
    return firstLine(text) || `${this.name} refuses`;
  }
}
