import { withoutCredentials, wrongValue } from '../../core/errors.ts';
import { type Clock, systemClock } from '../../core/clock.ts';

/* Requests to HTTP servers: to the tasks API, and to Prometheus. Users may put credentials into their URLs. */

/** @throws TypeError - it is not a URL of http or https. The message has no credentials. */
export function requireHttpUrl(argument: string, value: unknown): void {
  if (isHttpUrl(value)) return;
  const isUrl = typeof value === 'string' || value instanceof URL;
  throw wrongValue(argument, 'a URL of http or https', isUrl ? withoutCredentials(value) : value);
}

/** The credentials are decoded for each request, so they must be decodable. */
export function isHttpUrl(value: unknown): boolean {
  try {
    const { protocol, username, password } = new URL(value as string | URL);
    decodeURIComponent(`${username}${password}`);
    return protocol === 'http:' || protocol === 'https:';
  } catch {
    return false;
  }
}

/** Returns the headers for the credentials in a URL: `fetch` rejects a URL that has them. */
export function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` };
}

/** The tasks API of another process. */
export class RemoteApi {
  /** Where the handler is mounted, for messages: without credentials. */
  readonly name: string;
  readonly #root: string;

  constructor({ origin, pathname }: URL) {
    const path = withoutTrailingSlashes(pathname);
    this.name = `${origin}${path}`;
    this.#root = `${this.name}${path.endsWith('/api') ? '' : '/api'}`;
  }

  /** Sends a request, and reads the whole response. Rejects only with the reason of the signal. */
  async send({ path, method, signal, timeoutMs, ...request }: ApiRequest): Promise<TextResponse> {
    signal.throwIfAborted();
    const { body, clock = systemClock } = request;
    const headers = new Headers(request.headers);
    headers.set('accept', 'application/json');
    if (body !== undefined) headers.set('content-type', 'application/json');
    const controller = new AbortController();
    const abort = (): void => {
      controller.abort();
    };
    const timeout = clock.setTimeout(abort, timeoutMs);
    signal.addEventListener('abort', abort);
    try {
      const init = { method, headers, body: body ?? null, signal: controller.signal };
      // A redirect would take the credentials to another server.
      const response = await fetch(`${this.#root}${path}`, { ...init, redirect: 'manual' });
      return { status: response.status, text: await response.text() };
    } catch (cause) {
      signal.throwIfAborted();
      const text = controller.signal.aborted ? `no response within ${timeoutMs} ms` : reasonOf(cause);
      return { status: undefined, text, cause };
    } finally {
      timeout.cancel();
      signal.removeEventListener('abort', abort);
    }
  }

  /** Returns the message of the error if there is no response. @param reason - why there is none. */
  unreachable(reason: string): string {
    return `cannot reach ${this.name}: ${reason}`;
  }

  /** Returns the message of the error if a response is not one of the API. */
  notTheApi(): string {
    return `${this.name} does not respond as the tasks API. Is it mounted there?`;
  }
}

interface ApiRequest {
  readonly method: string;
  /** Path below `/api`. */
  readonly path: string;
  readonly headers: Headers | Readonly<Record<string, string>>;
  /** JSON; undefined for a request without a body. */
  readonly body: string | undefined;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly clock?: Clock;
}

/** A loop, because `/\/+$/` takes quadratic time on a path of slashes that does not end with one. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}

/** A response as text, or why there is none. */
export type TextResponse =
  | { readonly status: number; readonly text: string }
  | { readonly status: undefined; readonly text: string; readonly cause: unknown };

/** Maximum number of characters of a response in a message. */
const SHOWN_CHARACTERS = 200;

/** Returns the first line of a response, for a message, or of the `message` of its JSON; empty for a page of HTML. */
export function firstLine(text: string): string {
  const [line = ''] = messageIn(text).trimStart().split('\n');
  return line.startsWith('<') ? '' : line.trim().slice(0, SHOWN_CHARACTERS);
}

/** A dashboard and many frameworks respond with `{"message":"…"}`, where the tasks API has plain text. */
function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === 'string' ? message : text;
  } catch {
    return text; // not JSON, or null
  }
}

/** Returns why a `fetch` has failed: its error has the reason in its cause. */
function reasonOf(error: unknown): string {
  return messageOf((error as { cause?: unknown }).cause ?? error);
}

/** Returns the message of an error, or its code: the error of several attempts has no message. */
export function messageOf(error: unknown): string {
  const { message = '', code = '' } = error as { message?: string; code?: string };
  return message === '' ? code : message;
}
