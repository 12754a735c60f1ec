import type { IncomingMessage } from 'node:http';
import type { Inspector } from '../inspector.ts';
import { HttpError } from './http-error.ts';
import { readJson, taskIdsOf } from './request-body.ts';
import { requireJsonType } from './request-guard.ts';
import type { Parameters } from './route-table.ts';

/** How bytes are shown. What the application's formatter throws is reported. */
export type ShowBytes = (bytes: Uint8Array, taskType: string, report: (error: unknown) => void) => string;

/** What all operations share. */
export interface Api {
  readonly inspector: Inspector;
  readonly wallNow: () => number;
  readonly showPayload: ShowBytes;
  readonly showResult: ShowBytes;
  readonly maxBodyBytes: number;
  /** Receives the errors that the caller does not. Never throws. */
  readonly onError: (error: unknown, request: IncomingMessage) => void;
}

/** An operation: what it resolves with becomes JSON, and undefined an answer without a body. */
export type Action = (call: Call) => Promise<unknown>;

/** asynqmon's. */
const DEFAULT_PAGE_SIZE = 20;

/** A page is made in one go. */
const MAX_PAGE_SIZE = 1_000;

/** A request, as an operation sees it. */
export class Call {
  readonly api: Api;
  readonly query: URLSearchParams;
  readonly #request: IncomingMessage;
  readonly #parameters: Parameters;

  constructor(api: Api, request: IncomingMessage, parameters: Parameters, query: URLSearchParams) {
    this.api = api;
    this.query = query;
    this.#request = request;
    this.#parameters = parameters;
  }

  get inspector(): Inspector {
    return this.api.inspector;
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
    return this.#parameters.get(name) ?? '';
  }

  /** The part of a list that is asked for. */
  get page(): { readonly page: number; readonly pageSize: number } {
    const pageSize = this.positive('size', DEFAULT_PAGE_SIZE);
    if (pageSize > MAX_PAGE_SIZE) throw new HttpError(400, `size must be at most ${MAX_PAGE_SIZE}`);
    return { page: this.positive('page', 1), pageSize };
  }

  /** A number of the query. @throws HttpError 400 - it is none, or below 1. */
  positive(name: string, otherwise: number): number {
    const text = this.query.get(name);
    if (text === null || text === '') return otherwise;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    if (value < 1) throw new HttpError(400, `${name} must be a whole number of at least 1`);
    return value;
  }

  /** Reports what went wrong with a part of an answer to the operator. */
  readonly report = (error: unknown): void => {
    this.api.onError(error, this.#request);
  };

  showPayload(bytes: Uint8Array, taskType: string): string {
    return this.api.showPayload(bytes, taskType, this.report);
  }

  showResult(bytes: Uint8Array, taskType: string): string {
    return this.api.showResult(bytes, taskType, this.report);
  }

  async taskIds(): Promise<readonly string[]> {
    requireJsonType(this.#request, true);
    return taskIdsOf(await readJson(this.#request, this.api.maxBodyBytes));
  }
}
