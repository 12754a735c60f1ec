import type { IncomingMessage, ServerResponse } from 'node:http';
import { wrongType } from '../../core/errors.ts';
import { Inspector } from '../inspector.ts';
import { redisInfoOf } from '../info.ts';
import { asynqmonRoutes } from './asynqmon-routes.ts';
import { Call, type Action } from './call.ts';
import { enqueueRoutes } from './enqueue-routes.ts';
import {
  HttpError,
  httpErrorOf,
  internalError,
  ofApplication,
  SECURITY_HEADERS,
  unauthorized,
} from './http-error.ts';
import { prometheusRoutes } from './prometheus-routes.ts';
import { RequestGuard, requireJsonType } from './request-guard.ts';
import { isRead, notAllowed, RouteTable, splitUrl, type Match, type Route } from './route-table.ts';
import {
  resolveHandlerOptions,
  type ResolvedTasksHandlerOptions,
  type TasksHandlerOptions,
} from './tasks-handler-options.ts';

/** A request handler for `http.createServer`, and for Express and frameworks with its `next`. */
export type TasksHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/**
 * Returns a handler that serves queues and tasks over HTTP at `{rootPath}/api`, in the JSON of asynqmon's REST interface, so that
 * asynqmon's web interface works with it; and enqueues the tasks of each `Client` that has its URL. Where asynqmon responds with
 * 500 to every error, the handler responds with 400, 404, 405, 409, 413 or 503 and the reason.
 *
 * A request for a path outside the interface is passed to `next`, or gets 404. Requests that a browser sends for the page of another
 * site are refused: a `Host` that is not allowed and a write from another origin get 403, a write whose content type is not JSON gets
 * 415.
 *
 * @throws TypeError or RangeError - an option is invalid.
 *
 * @example
 * ```ts
 * createServer(tasksHandler({ broker, authorize: (request) => isAdmin(request) })).listen(8080);
 * app.use('/monitoring', tasksHandler({ broker })); // Express
 * ```
 */
export function tasksHandler(options: TasksHandlerOptions): TasksHandler {
  const resolved = resolveHandlerOptions(options);
  const handler = new Handler(resolved);
  return (request, response, next) => {
    handler.handle(request, response, next);
  };
}

class Handler {
  readonly #options: ResolvedTasksHandlerOptions;
  readonly #inspector: Inspector;
  readonly #guard: RequestGuard;
  readonly #routes: RouteTable<Action>;

  constructor(options: ResolvedTasksHandlerOptions) {
    const { broker, prometheusUrl, redisInfo } = options;
    this.#options = options;
    this.#inspector = new Inspector({ broker });
    this.#guard = new RequestGuard(options.allowedHosts, 'tasksHandler');
    this.#routes = new RouteTable<Action>([
      ...asynqmonRoutes,
      ...enqueueRoutes(broker, options.maxTasksPerRequest),
      ...(prometheusUrl === undefined ? [] : prometheusRoutes(prometheusUrl)),
      ...(redisInfo === undefined ? [] : [redisInfoRoute(redisInfo)]),
    ]);
  }

  handle(request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void): void {
    const [path, query] = this.#pathOf(request);
    const match = path === undefined ? undefined : this.#routes.find(request.method, path);
    if (match === undefined && next !== undefined) next();
    else void this.#respond(request, response, this.#serve(request, match, query));
  }

  async #respond(
    request: IncomingMessage,
    response: ServerResponse,
    result: Promise<unknown>,
  ): Promise<void> {
    try {
      answer(response, await result);
    } catch (error) {
      this.#refuse(request, response, error);
    }
  }

  async #serve(
    request: IncomingMessage,
    match: Match<Action> | undefined,
    query: URLSearchParams,
  ): Promise<unknown> {
    this.#guard.check(request, isRead(request.method));
    await this.#requireAuthorized(request);
    if (match === undefined) throw new HttpError(404, 'not found');
    if (match instanceof HttpError) throw match;
    if (!isRead(request.method)) this.#requireWritable(request);
    return match.action(new Call(this.#options, this.#inspector, request, match.parameters, query));
  }

  /** Returns the path below `{rootPath}/api`, undefined if it is elsewhere. */
  #pathOf({ url }: IncomingMessage): readonly [path: string | undefined, query: URLSearchParams] {
    const [path, query] = splitUrl(url);
    const prefix = `${this.#options.rootPath}/api`;
    const below = path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
    return [below, query];
  }

  async #requireAuthorized(request: IncomingMessage): Promise<void> {
    const { authorize, onError } = this.#options;
    if (authorize === undefined) return;
    const report = (error: unknown): void => {
      onError(error, request);
    };
    const refusal = await ofApplication(report, async () => refusalOf(await authorize(request)));
    if (refusal !== undefined) throw refusal;
  }

  #requireWritable(request: IncomingMessage): void {
    if (this.#options.readOnly) throw notAllowed(request.method, ['GET']);
    requireJsonType(request, false);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    const httpError = httpErrorOf(error);
    if (httpError === undefined) this.#options.onError(error, request);
    const { status, message, headers } = httpError ?? internalError();
    try {
      send(response, status, { ...headers, 'content-type': 'text/plain; charset=utf-8' }, `${message}\n`);
    } catch (another) {
      this.#options.onError(another, request); // thrown by a listener of the application, such as that of a middleware
      response.destroy();
    }
  }
}

/** Returns undefined if the request may be served. @throws TypeError - the verdict is not an `Authorization`. */
function refusalOf(verdict: unknown): HttpError | undefined {
  if (verdict === true) return undefined;
  if (verdict === false) return new HttpError(403, 'forbidden');
  const refusal = unauthorized(verdict);
  if (refusal !== undefined) return refusal;
  throw wrongType('the result of authorize', 'a boolean, or a challenge that is a header value', verdict);
}

function redisInfoRoute(redisInfo: () => Promise<unknown>): Route<Action> {
  const action: Action = (call) => ofApplication(call.report, async () => redisInfoOf(await redisInfo()));
  return ['GET', '/redis_info', action];
}

function answer(response: ServerResponse, value: unknown): void {
  if (value === undefined) send(response, 204, {}, undefined);
  else
    send(response, 200, { 'content-type': 'application/json; charset=utf-8' }, `${JSON.stringify(value)}\n`);
}

/** Sends bytes: for a string, Node would add its encoding to a header. Does nothing if the client has disconnected. */
function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const length = bytes === undefined ? {} : { 'content-length': bytes.length };
  response.writeHead(status, { ...SECURITY_HEADERS, ...headers, ...length });
  response.end(bytes);
}
