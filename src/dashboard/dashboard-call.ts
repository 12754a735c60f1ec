import { pageIn, requireFields } from '../tasks/http/call.ts';
import { HttpError } from '../tasks/http/http-error.ts';
import { requireJsonType } from '../tasks/http/request-guard.ts';
import type { Parameters } from '../tasks/http/route-table.ts';
import type { ListOptions } from '../tasks/inspector-options.ts';
import { isTaskState, type TaskState } from '../tasks/task-state.ts';
import { nameOfSegment, type DashboardAction } from './dashboard-json.ts';
import type { Incoming, Outgoing } from './exchange.ts';
import type { TasksSource } from './tasks-source.ts';

/** A result of a route that is not sent as JSON. */
export class Reply {
  readonly outgoing: Outgoing;

  constructor(outgoing: Outgoing) {
    this.outgoing = outgoing;
  }
}

/** An operation of the API: its result is sent as JSON; undefined is a response without a body. */
export type DashboardOperation = (call: DashboardCall) => unknown;

/** Entries of a page, if the request does not have their number. */
const DEFAULT_PAGE_SIZE = 30;

/** A request of the API as its operation reads it. */
export class DashboardCall {
  readonly incoming: Incoming;
  readonly query: URLSearchParams;
  /** What the request may change. */
  readonly allowed: ReadonlySet<DashboardAction>;
  readonly #source: TasksSource | undefined;
  readonly #parameters: Parameters;

  constructor(
    incoming: Incoming,
    query: URLSearchParams,
    allowed: ReadonlySet<DashboardAction>,
    source: TasksSource | undefined,
    parameters: Parameters,
  ) {
    this.incoming = incoming;
    this.query = query;
    this.allowed = allowed;
    this.#source = source;
    this.#parameters = parameters;
  }

  /** @throws HttpError 404 - no broker is shown. */
  get source(): TasksSource {
    if (this.#source === undefined) throw noTasks();
    return this.#source;
  }

  get queue(): string {
    return this.parameter('queue');
  }

  parameter(name: string): string {
    return nameOfSegment(this.#parameters[name] ?? '');
  }

  /** The page of a list that the query selects. */
  get page(): Required<ListOptions> {
    return pageIn(this.query, DEFAULT_PAGE_SIZE);
  }

  /** @throws HttpError 403 - the request may not do that. */
  require(action: DashboardAction): void {
    if (this.allowed.has(action)) return;
    throw new HttpError(403, `you may not change this here: '${action}' is not allowed`);
  }

  /** Reads an object from the body. @throws HttpError 400 - it is not an object, or has other fields than these. 413, 415. */
  async body<Name extends string>(
    ...names: readonly Name[]
  ): Promise<Readonly<Partial<Record<Name, unknown>>>> {
    requireJsonType(this.incoming.head, true);
    return requireFields(await this.incoming.json(), names);
  }
}

export function noTasks(): HttpError {
  return new HttpError(404, 'this dashboard shows no tasks');
}

/** @throws HttpError 400 - it is not a state. */
export function requireTaskState(word: unknown): TaskState {
  if (typeof word === 'string' && isTaskState(word)) return word;
  throw new HttpError(400, 'state must be the name of a state of tasks');
}
