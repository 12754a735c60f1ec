import type { IncomingMessage } from 'node:http';
import { wrongType } from '../../core/errors.ts';
import { isThenable } from '../../core/validate.ts';
import { MAX_PAGE_SIZE, type ListOptions } from '../inspector-options.ts';
import type { Inspector } from '../inspector.ts';
import { shorten, showBytes } from '../payload.ts';
import type { Presenter } from './asynqmon-json.ts';
import { HttpError } from './http-error.ts';
import { requireJsonType } from './request-guard.ts';
import type { Parameters } from './route-table.ts';
import type { ResolvedTasksHandlerOptions } from './tasks-handler-options.ts';

/** An operation: its result is sent as JSON; undefined is a response without a body. */
export type Action = (call: Call) => Promise<unknown>;

/** Shows bytes of users as text. */
type Format = (bytes: Uint8Array, taskType: string) => string;

const NOT_SHOWN = 'cannot be shown';

/** The same as in asynqmon. */
const DEFAULT_PAGE_SIZE = 20;

/** A request as its operation reads it. */
export class Call implements Presenter {
  readonly inspector: Inspector;
  readonly query: URLSearchParams;
  readonly #options: ResolvedTasksHandlerOptions;
  readonly #request: IncomingMessage;
  readonly #parameters: Parameters;

  constructor(
    options: ResolvedTasksHandlerOptions,
    inspector: Inspector,
    request: IncomingMessage,
    parameters: Parameters,
    query: URLSearchParams,
  ) {
    this.inspector = inspector;
    this.query = query;
    this.#options = options;
    this.#request = request;
    this.#parameters = parameters;
  }

  get nowMs(): number {
    return this.#options.broker.clock.wallNow();
  }

  get queue(): string {
    return this.parameter('queue');
  }

  get group(): string {
    return this.parameter('group');
  }

  get task(): string {
    return this.parameter('task');
  }

  parameter(name: string): string {
    return this.#parameters[name] ?? '';
  }

  /** The page of a list that the query selects. */
  get page(): Required<ListOptions> {
    return pageIn(this.query, DEFAULT_PAGE_SIZE);
  }

  /** Reports an error in a part of the response to the operator. */
  readonly report = (error: unknown): void => {
    this.#options.onError(error, this.#request);
  };

  showPayload(bytes: Uint8Array, taskType: string): string {
    const { formatPayload, maxPayloadLength } = this.#options;
    return this.#show(bytes, taskType, formatPayload, maxPayloadLength);
  }

  showResult(bytes: Uint8Array, taskType: string): string {
    const { formatResult, maxResultLength } = this.#options;
    return this.#show(bytes, taskType, formatResult, maxResultLength);
  }

  /** An error of a formatter affects only the bytes that it had to show. */
  #show(bytes: Uint8Array, taskType: string, format: Format | undefined, maxLength: number): string {
    if (format === undefined) return showBytes(bytes, maxLength);
    try {
      return shorten(textOf(format(bytes, taskType)), maxLength);
    } catch (error) {
      this.report(error);
      return NOT_SHOWN;
    }
  }

  /** Reads the ids of a batch from the body. @throws HttpError 400 - it has none. 413, 415. */
  async taskIds(): Promise<readonly string[]> {
    const { task_ids: ids } = await this.body('task_ids');
    if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) {
      throw new HttpError(400, 'task_ids must be an array of strings');
    }
    return ids;
  }

  /** Reads an object from the body. @throws HttpError 400 - it is not an object, or has other fields than these. 413, 415. */
  async body<Name extends string>(
    ...names: readonly Name[]
  ): Promise<Readonly<Partial<Record<Name, unknown>>>> {
    requireJsonType(this.#request, true);
    return requireFields(await readJson(this.#request, this.#options.maxBodyBytes), names);
  }
}

/** A promise is reported as a wrong type. Its rejection is handled, because it would end the process. */
function textOf(formatted: unknown): string {
  if (typeof formatted === 'string') return formatted;
  if (isThenable(formatted)) Promise.resolve(formatted).catch(() => undefined);
  throw wrongType('the result of a formatter', 'a string', formatted);
}

/** Returns the page of a list that a query selects. @throws HttpError 400 - the page or its size is invalid. */
export function pageIn(query: URLSearchParams, defaultSize: number): Required<ListOptions> {
  const pageSize = positiveIn(query, 'size', defaultSize);
  if (pageSize > MAX_PAGE_SIZE) throw new HttpError(400, `size must be at most ${MAX_PAGE_SIZE}`);
  return { page: positiveIn(query, 'page', 1), pageSize };
}

/** Ten digits: seconds until the year 2286, and a page whose last entry has a number that is a safe integer. */
const POSITIVE = /^\d{1,10}$/;

/** Returns a number of a query. @throws HttpError 400 - it is not an integer, below 1, or too long. */
export function positiveIn(query: URLSearchParams, name: string, otherwise: number): number {
  const text = query.get(name) ?? '';
  if (text === '') return otherwise;
  const value = POSITIVE.test(text) ? Number(text) : 0;
  if (value < 1) throw new HttpError(400, `${name} must be a whole number of at least 1`);
  return value;
}

export function requireFields<Name extends string>(
  body: unknown,
  names: readonly Name[],
): Readonly<Partial<Record<Name, unknown>>> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(400, 'the body must be an object');
  }
  const unknown = Object.keys(body).find((name) => !(names as readonly string[]).includes(name));
  if (unknown !== undefined) throw new HttpError(400, `unknown field ${JSON.stringify(unknown)}`);
  return body as Partial<Record<Name, unknown>>;
}

/** Reads the body of a request. @throws HttpError 400 - it is not JSON. 413. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  // An application may have parsed the body and put it on the request.
  if (request.readableEnded) return parsedBody(request);
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  try {
    return await parseBody(chunks, request.headers['content-length'], maxBytes);
  } catch (error) {
    request.resume(); // what was not read, so that the client gets the response
    throw error;
  }
}

/** @throws HttpError 400 - there is none: Fastify puts it on a request of its own. */
function parsedBody(request: IncomingMessage): unknown {
  const { body } = request as { readonly body?: unknown };
  if (body !== undefined) return body;
  throw new HttpError(400, 'the request has no body, or a framework has read it before this handler');
}

/** Parses a body. @throws HttpError 400 - it is not JSON, or has ended early. 413. */
export async function parseBody(
  chunks: AsyncIterable<Uint8Array>,
  contentLength: string | null = '0',
  maxBytes: number,
): Promise<unknown> {
  if (Number(contentLength) > maxBytes) throw tooLong(maxBytes);
  const read: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of chunks) {
      length += chunk.length;
      if (length > maxBytes) break;
      read.push(chunk);
    }
  } catch {
    throw new HttpError(400, 'the body has ended early');
  }
  if (length > maxBytes) throw tooLong(maxBytes);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(read)));
  } catch {
    throw new HttpError(400, 'the body is not JSON');
  }
}

/** The rest of the body is not read, so the connection cannot serve another request. */
function tooLong(maxBytes: number): HttpError {
  return new HttpError(413, `the body is longer than ${maxBytes} bytes`, { connection: 'close' });
}
