import { CommandError } from '../../command-error.ts';

/** How long an answer may take, in milliseconds: as long as asynqmon has for one. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** All tasks of a state, in milliseconds: longer than the host waits by itself. */
const MAX_TIMEOUT_MS = 3_600_000;

/** What servers say of a path that they do not have; of a queue, the API says more. */
const NO_PATH = /^(?:not found|404 page not found|)$/i;

/** Longest part of an answer that a message repeats, in characters. */
const SHOWN_CHARACTERS = 200;

/** A request that was answered, but not with success. */
export class HttpStatusError extends CommandError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Nobody has answered, or not with what was expected: nothing else will work either. */
export class Unreachable extends CommandError {}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** asynqmon's REST interface, as `tasksHandler` serves it. */
export class HttpApi {
  /** For people. */
  readonly name: string;
  readonly #root: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;
  readonly #timeoutMs: number;

  /**
   * @param url - where the handler is mounted; what it has of a user and a password is not used.
   * @param signal - gives up what is on its way.
   */
  constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
    timeoutMs = DEFAULT_TIMEOUT_MS,
  ) {
    const path = withoutTrailingSlashes(url.pathname);
    this.name = `${url.origin}${path}`;
    this.#root = `${this.name}${path.endsWith('/api') ? '' : '/api'}`;
    this.#headers = headers;
    this.#signal = signal;
    this.#timeoutMs = timeoutMs;
  }

  get(path: string): Promise<unknown> {
    return this.#send('GET', path);
  }

  post(path: string): Promise<unknown> {
    return this.#send('POST', path);
  }

  delete(path: string): Promise<unknown> {
    return this.#send('DELETE', path);
  }

  /** There may be many, and it may take long. */
  postAll(path: string): Promise<unknown> {
    return this.#send('POST', path, MAX_TIMEOUT_MS);
  }

  /** As `postAll`. */
  deleteAll(path: string): Promise<unknown> {
    return this.#send('DELETE', path, MAX_TIMEOUT_MS);
  }

  /** What is there answers, but not as the API does. */
  notTheApi(): Unreachable {
    return new Unreachable(`${this.name} does not answer as the API of tasks does: is it there?`);
  }

  /** @throws CommandError - nobody answers, or with something else than success. */
  async #send(method: string, path: string, timeoutMs = this.#timeoutMs): Promise<unknown> {
    const { status, text } = await this.#ask(method, path, timeoutMs);
    if (status === 204) return undefined;
    if (status !== 200) throw new HttpStatusError(status, `${this.#reason(text, status)} (HTTP ${status})`);
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw this.notTheApi();
    }
  }

  async #ask(method: string, path: string, timeoutMs: number): Promise<Answer> {
    this.#signal.throwIfAborted();
    const request = new AbortController();
    const abort = (): void => {
      request.abort();
    };
    const timeout = setTimeout(abort, timeoutMs);
    this.#signal.addEventListener('abort', abort);
    try {
      const headers = { accept: 'application/json', ...this.#headers };
      // A redirect would take the token elsewhere.
      const init = { method, headers, signal: request.signal, redirect: 'manual' } as const;
      const response = await fetch(`${this.#root}${path}`, init);
      return { status: response.status, text: await response.text() };
    } catch (error) {
      this.#signal.throwIfAborted();
      const reason = request.signal.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(error);
      throw new Unreachable(`cannot reach ${this.name}: ${reason}`);
    } finally {
      clearTimeout(timeout);
      this.#signal.removeEventListener('abort', abort);
    }
  }

  #reason(text: string, status: number): string {
    if (status === 404 && NO_PATH.test(firstLine(text))) return `there is no API of tasks at ${this.name}`;
    if (status >= 300 && status < 400) return `${this.name} points elsewhere`;
    if (status === 401 || status === 403) return `${this.name} refuses: ${firstLine(text) || 'not allowed'}`;
    return firstLine(text) || `${this.name} refuses`;
  }
}

/** Not a regular expression: `/\/+$/` starts again at each slash of a path that does not end with one. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}

/** Of a page of HTML, nothing. */
function firstLine(text: string): string {
  const [line = ''] = text.trimStart().split('\n');
  return line.startsWith('<') ? '' : line.trim().slice(0, SHOWN_CHARACTERS);
}

/** `fetch` says no more than that it failed; its cause says why, and the cause of many attempts has no message. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  const { message = '', code = '' } = cause as { message?: string; code?: string };
  return message === '' ? code : message;
}
