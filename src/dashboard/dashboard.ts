import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { systemClock, type Clock } from '../core/clock.ts';
import { requireFields } from '../tasks/http/call.ts';
import { HttpError, httpErrorOf, internalError, SECURITY_HEADERS } from '../tasks/http/http-error.ts';
import {
  isRead,
  notAllowed,
  RouteTable,
  splitUrl,
  type Match,
  type Route,
} from '../tasks/http/route-table.ts';
import { AccessControl, tokenOf } from './access.ts';
import { DashboardCall, noTasks, Reply, type DashboardOperation } from './dashboard-call.ts';
import type { ErrorJson, HistoryJson, SessionJson } from './dashboard-json.ts';
import {
  resolveDashboardOptions,
  type DashboardOptions,
  type DashboardRequest,
  type ResolvedDashboardOptions,
} from './dashboard-options.ts';
import {
  incomingOfFetch,
  incomingOfNode,
  responseOf,
  sendToNode,
  type Incoming,
  type Outgoing,
  type Stream,
} from './exchange.ts';
import { Health } from './health.ts';
import { ALL_QUEUES } from './history.ts';
import { pageFile } from './page-files.ts';
import { RuntimeParts } from './runtime-parts.ts';
import { isSpan, Sampler } from './sampler.ts';
import { dashboardRoutes, requireTaskChange } from './task-routes.ts';
import { filterOf, filterOfQuery, FILTER_FIELDS } from './search-filter.ts';
import { Searches } from './search.ts';
import { BrokerSource, type TasksSource } from './tasks-source.ts';

/** The version of the package: a test compares it with the manifest. */
const VERSION = '0.1.0';

/** A dashboard: a handler for `node:http`, Express, Fastify and Koa. */
export interface Dashboard {
  /**
   * Serves a request. One for a path outside the dashboard is passed to `next`, or gets 404.
   *
   * @example app.use('/jobs', dashboard({ broker })); // Express
   */
  (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void;
  /** Serves a request of `fetch`: for Hono, Next.js, Bun, Deno. Never rejects. The option `rootPath` is needed under a prefix. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends all streams and searches, and stops reading the broker; requests get 503 from now on. Idempotent. */
  readonly close: () => void;
}

/**
 * Returns a dashboard of queues, tasks, servers and schedules, and of the timers, purgatories and queues of this process: a page and
 * its API, at `rootPath`. It reads the broker once a second while a browser shows it, and otherwise once a minute.
 *
 * Without `authorize`, every client that reaches the server has all rights: mount it only where other people cannot reach it.
 *
 * @throws TypeError or RangeError - an option is invalid, or there is nothing to show.
 *
 * @example
 * ```ts
 * const jobs = dashboard({ broker, timers: [timer], authorize: (request) => isAdmin(request) || 'read-only' });
 * createServer(jobs).listen(8080);
 * app.use('/jobs', jobs); // Express
 * ```
 */
export function dashboard(options: DashboardOptions): Dashboard {
  const resolved = resolveDashboardOptions(options);
  const { broker } = resolved;
  return serveDashboard(resolved, broker && new BrokerSource(broker));
}

/** As `dashboard`, for tasks that are not reached by a broker of this process, and with another clock. */
export function serveDashboard(
  options: ResolvedDashboardOptions,
  source: TasksSource | undefined,
  clock: Clock = systemClock,
): Dashboard {
  const handler = new DashboardHandler(options, source, clock);
  const serve = (request: IncomingMessage, response: ServerResponse, next?: () => void): void => {
    void handler.handle(request, response, next);
  };
  return Object.assign(serve, {
    fetch: (request: Request) => handler.fetch(request),
    close: () => {
      handler.close();
    },
  });
}

/** Where a request leads. */
type Target =
  /** A file of the page. */
  | { readonly file: string }
  /** The root without its slash: relative URLs of the page would be wrong. */
  | { readonly redirect: string }
  /** The API. */
  | { readonly match: Match<DashboardOperation> | undefined; readonly query: URLSearchParams };

class DashboardHandler {
  readonly #options: ResolvedDashboardOptions;
  readonly #source: TasksSource | undefined;
  readonly #access: AccessControl;
  readonly #parts: RuntimeParts;
  readonly #sampler: Sampler;
  readonly #health = new Health();
  readonly #searches: Searches | undefined;
  readonly #routes: RouteTable<DashboardOperation>;
  /** Of the responses that are being sent. */
  readonly #controllers = new Set<AbortController>();
  #isClosed = false;

  constructor(options: ResolvedDashboardOptions, source: TasksSource | undefined, clock: Clock) {
    this.#options = options;
    this.#source = source;
    this.#access = new AccessControl(options);
    this.#parts = new RuntimeParts(options);
    this.#sampler = new Sampler(source, this.#parts, clock);
    this.#searches =
      source &&
      new Searches(source, (error) => {
        options.onError(error, undefined);
      });
    this.#routes = new RouteTable([...this.#ownRoutes(), ...dashboardRoutes]);
  }

  async handle(request: IncomingMessage, response: ServerResponse, next?: () => void): Promise<void> {
    const incoming = incomingOfNode(request);
    const controller = new AbortController();
    this.#controllers.add(controller);
    try {
      const outgoing = await this.#respond(incoming, next !== undefined);
      if (outgoing === undefined) next?.();
      else await sendToNode(outgoing, request, response, controller);
    } catch (error) {
      this.#options.onError(error, request); // of a stream, or thrown by a listener of the application
      response.destroy();
    } finally {
      this.#controllers.delete(controller);
    }
  }

  async fetch(request: Request): Promise<Response> {
    const controller = new AbortController();
    this.#controllers.add(controller);
    const leave = (): void => {
      controller.abort();
    };
    request.signal.addEventListener('abort', leave); // where a runtime does not cancel the body of the response
    if (request.signal.aborted) leave();
    const outgoing =
      (await this.#respond(incomingOfFetch(request), false)) ?? jsonOf({ message: 'not found' }, 404);
    return responseOf(outgoing, controller, (error) => {
      this.#controllers.delete(controller);
      request.signal.removeEventListener('abort', leave);
      if (error !== undefined) this.#options.onError(error, request);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#sampler.close();
    this.#health.close();
    for (const controller of this.#controllers) controller.abort();
  }

  /** Returns undefined for a path outside the dashboard. Never rejects. */
  async #respond(incoming: Incoming, hasNext: boolean): Promise<Outgoing | undefined> {
    try {
      const target = this.#targetOf(incoming);
      if (target === undefined && hasNext) return undefined;
      const { status, headers, body } = await this.#serve(incoming, target);
      const isEmpty = incoming.head.method === 'HEAD' || body === undefined;
      return { status, headers: { ...SECURITY_HEADERS, ...headers }, ...(!isEmpty && { body }) };
    } catch (error) {
      return this.#refuse(error, incoming.original);
    }
  }

  async #serve(incoming: Incoming, target: Target | undefined): Promise<Outgoing> {
    if (this.#isClosed) throw new HttpError(503, 'the dashboard is closed');
    const isApi = target !== undefined && 'match' in target;
    const allowed = await this.#access.admit(incoming, isApi);
    this.#sampler.start();
    const { method } = incoming.head;
    if (target === undefined) throw new HttpError(404, 'not found');
    if (isApi) {
      const { match, query } = target;
      if (match instanceof HttpError) throw match;
      if (match === undefined) throw new HttpError(404, 'not found');
      if (!isRead(method)) this.#access.requireToken(incoming);
      const call = new DashboardCall(incoming, query, allowed, this.#source, match.parameters);
      const outgoing = answer(await match.action(call));
      return isRead(method) ? unlessKnown(outgoing, incoming.head.headers) : outgoing;
    }
    if (!isRead(method)) throw notAllowed(method, ['GET']);
    if ('redirect' in target) return { status: 302, headers: { location: target.redirect } };
    const file = await pageFile(target.file, incoming);
    if (file === undefined) throw new HttpError(404, 'not found');
    return file;
  }

  /** Returns undefined if the path is not one of the dashboard. */
  #targetOf({ head: { method, url }, originalUrl }: Incoming): Target | undefined {
    const { rootPath } = this.#options;
    const [path, query] = splitUrl(url);
    const [original] = splitUrl(originalUrl);
    if (path === rootPath || path === `${rootPath}/`) {
      return original.endsWith('/') ? { file: '' } : { redirect: redirectOf(original, url) };
    }
    if (!path.startsWith(`${rootPath}/`)) return undefined;
    const below = path.slice(rootPath.length);
    if (below.startsWith('/api/')) {
      return { match: this.#routes.find(method, below.slice('/api'.length)), query };
    }
    const [, file] = /^\/([\w.-]+)$/.exec(below) ?? [];
    return file === undefined ? undefined : { file };
  }

  #refuse(error: unknown, request: DashboardRequest): Outgoing {
    const httpError = httpErrorOf(error);
    if (httpError === undefined) this.#options.onError(error, request);
    const { status, message, headers } = httpError ?? internalError();
    // Only an error of the client is read again: another one may be null, or throw.
    const { code } = (httpError === undefined ? {} : error) as { code?: unknown };
    const json: ErrorJson = { message, ...(typeof code === 'string' && { code }) };
    return jsonOf(json, status, { ...SECURITY_HEADERS, ...headers });
  }

  #ownRoutes(): readonly Route<DashboardOperation>[] {
    return [
      ['GET', '/session', (call) => this.#session(call)],
      ['GET', '/live', () => streamOf('text/event-stream', (signal) => this.#sampler.events(signal))],
      ['GET', '/history', (call) => this.#history(call)],
      ['GET', '/health', () => this.#health.read(this.#source)],
      ['GET', '/search', (call) => this.#search(call)],
      ['POST', '/search/change', (call) => this.#change(call)],
      ['GET', '/runtime', () => this.#parts.toJson()],
    ];
  }

  #session({ incoming, allowed }: DashboardCall): Reply {
    const { title, timers, purgatories, workQueues, diskQueues } = this.#options;
    const { token, headers } = tokenOf(incoming);
    const source = this.#source?.name;
    const session: SessionJson = {
      ...{ title, version: VERSION, ...(source !== undefined && { source }), actions: [...allowed], token },
      has: {
        tasks: this.#source !== undefined,
        timers: timers.length > 0,
        purgatories: purgatories.length > 0,
        workQueues: workQueues.length > 0,
        diskQueues: diskQueues.length > 0,
      },
    };
    return new Reply(jsonOf(session, 200, headers));
  }

  #search({ query }: DashboardCall): Reply {
    const [searches, filter] = [this.#requireSearches(), filterOfQuery(query)];
    return streamOf('application/x-ndjson', (signal) => searches.search(filter, signal));
  }

  async #change(call: DashboardCall): Promise<Reply> {
    const body = await call.body('filter', 'change');
    const change = requireTaskChange(body.change);
    call.require(change);
    const filter = filterOf(requireFields(body.filter, FILTER_FIELDS));
    const searches = this.#requireSearches();
    return streamOf('application/x-ndjson', (signal) => searches.change(filter, change, signal));
  }

  #requireSearches(): Searches {
    if (this.#searches === undefined) throw noTasks();
    return this.#searches;
  }

  #history({ query }: DashboardCall): HistoryJson {
    const span = query.get('span') ?? 'minutes';
    if (!isSpan(span)) throw new HttpError(400, 'span must be minutes or day');
    return this.#sampler.history(query.get('queue') ?? ALL_QUEUES, span);
  }
}

function answer(result: unknown): Outgoing {
  if (result instanceof Reply) return result.outgoing;
  return result === undefined ? { status: 204, headers: {} } : jsonOf(result);
}

function jsonOf(value: unknown, status = 200, headers: Outgoing['headers'] = {}): Outgoing {
  const body = Buffer.from(JSON.stringify(value));
  const length = String(body.length);
  const content = { 'content-type': 'application/json; charset=utf-8', 'content-length': length };
  return { status, headers: { ...content, ...headers }, body };
}

/** A page reads its path once a second: what is as it was then is not sent again. */
function unlessKnown(outgoing: Outgoing, headers: IncomingHttpHeaders): Outgoing {
  const { body } = outgoing;
  if (!(body instanceof Uint8Array)) return outgoing;
  const etag = `W/"${createHash('sha1').update(body).digest('base64url')}"`;
  if (headers['if-none-match'] === etag) return { status: 304, headers: { etag } };
  return { ...outgoing, headers: { ...outgoing.headers, etag } };
}

/** Neither a proxy nor a middleware may collect a stream to compress it. */
function streamOf(type: string, body: Stream): Reply {
  const headers = {
    ...{ 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store, no-transform' },
    'x-accel-buffering': 'no',
  };
  return new Reply({ status: 200, headers, body });
}

/** Relative to the path that the browser shows, which a proxy may have changed. */
function redirectOf(originalPath: string, url: string): string {
  const query = /\?[^#]*/.exec(url)?.[0] ?? '';
  return `./${originalPath.slice(originalPath.lastIndexOf('/') + 1)}/${query}`;
}
