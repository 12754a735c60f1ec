import { CommandError } from '../../command-error.ts';

/** How long an answer may take, in milliseconds: as long as asynqmon has for one. */
const TIMEOUT_MS = 10_000;

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

/** asynqmon's REST interface, as `tasksHandler` serves it. */
export class HttpApi {
  /** For people. */
  readonly name: string;
  readonly #root: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;

  /** @param url - where the handler is mounted; what it has of a user and a password is not used. */
  constructor(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const path = url.pathname.replace(/\/+$/, '');
    this.name = `${url.origin}${path}`;
    this.#root = `${this.name}${path.endsWith('/api') ? '' : '/api'}`;
    this.#headers = headers;
    this.#signal = signal;
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

  /** Takes as long as it takes: there may be many. */
  postAll(path: string): Promise<unknown> {
    return this.#send('POST', path, this.#signal);
  }

  /** As `postAll`. */
  deleteAll(path: string): Promise<unknown> {
    return this.#send('DELETE', path, this.#signal);
  }

  /** What is there answers, but not as the API does. */
  isAnother(): Unreachable {
    return new Unreachable(`${this.name} does not answer as the API of tasks does: is it there?`);
  }

  /** @throws CommandError - nobody answers, or with something else than success. */
  async #send(method: string, path: string, signal = this.#withTimeout()): Promise<unknown> {
    const { status, text } = await this.#ask(method, path, signal);
    if (status === 204) return undefined;
    if (status !== 200) throw new HttpStatusError(status, `${this.#reason(text, status)} (HTTP ${status})`);
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw this.isAnother();
    }
  }

  async #ask(
    method: string,
    path: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    try {
      const init = { method, headers: { accept: 'application/json', ...this.#headers }, signal };
      // A redirect would take the token elsewhere.
      const response = await fetch(`${this.#root}${path}`, { ...init, redirect: 'manual' });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      this.#signal.throwIfAborted();
      throw new Unreachable(`cannot reach ${this.name}: ${reasonOf(error)}`);
    }
  }

  #reason(text: string, status: number): string {
    if (status >= 300 && status < 400) return `${this.name} points elsewhere`;
    if (status === 401 || status === 403) return `${this.name} refuses: ${firstLine(text) || 'not allowed'}`;
    return firstLine(text) || `${this.name} refuses`;
  }

  #withTimeout(): AbortSignal {
    return AbortSignal.any([this.#signal, AbortSignal.timeout(TIMEOUT_MS)]);
  }
}

/** Of a page of HTML, nothing. */
function firstLine(text: string): string {
  const [line = ''] = text.trimStart().split('\n');
  return line.startsWith('<') ? '' : line.trim().slice(0, SHOWN_CHARACTERS);
}

/** `fetch` says no more than that it failed; its cause says why, and the cause of many attempts has no message. */
function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer within ${TIMEOUT_MS / 1_000} seconds`;
  }
  const { cause = error } = error as { cause?: unknown };
  const { message = '', code = '' } = cause as { message?: string; code?: string };
  return message === '' ? code : message;
}
