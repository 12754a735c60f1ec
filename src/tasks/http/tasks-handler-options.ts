import type { IncomingMessage } from 'node:http';
import { wrongValue } from '../../core/errors.ts';
import { integer, readOptions, type OptionTable, type Resolved } from '../../core/options.ts';
import { isThenable, requireBoolean, requireFunction, requireString } from '../../core/validate.ts';
import { requireBroker } from '../argument-checks.ts';
import type { Broker } from '../broker/broker.ts';
import type { RedisInfo } from '../info.ts';
import { requireHttpUrl } from './http-requests.ts';
import { normalizeHosts, requireAllowedHosts } from './request-guard.ts';

/** Result of `authorize`: allowed; forbidden (403); or unauthorized (401), with a challenge. */
export type Authorization = boolean | AuthorizationChallenge;

/** Requests credentials from the client. */
export interface AuthorizationChallenge {
  /** Value of the header `WWW-Authenticate`: `Basic realm="tasks"`. */
  readonly challenge: string;
}

/** Options of {@link tasksHandler}. */
export interface TasksHandlerOptions {
  /** The broker to inspect, and to enqueue tasks in. The handler does not close it. */
  readonly broker: Broker;
  /** Path where the handler is mounted, without `/api`; empty if the framework removes it from the URL. @default '' */
  readonly rootPath?: string | undefined;
  /**
   * Decides whether a request may be served; called for each one before the broker is read. If it throws, or returns something
   * other than an {@link Authorization}, the response is 500. It may take the request of its framework: `(request: ExpressRequest) => …`.
   *
   * @default every request is allowed: for a server that only you can reach
   * @example (request) => request.headers.authorization === `Bearer ${token}` || { challenge: 'Bearer' }
   */
  readonly authorize?:
    | { authorize(request: IncomingMessage): Authorization | Promise<Authorization> }['authorize']
    | undefined;
  /**
   * Host names by which browsers and other clients reach the server, without scheme and port; `'*'` allows every name.
   * `localhost`, names that end in `.localhost`, and IP addresses are always allowed. The response to a request with another
   * `Host` is 403: an attacker may have pointed that name at this server (DNS rebinding).
   *
   * @default []
   * @example ['jobs.example']
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Whether changes are disabled, enqueueing too: methods other than `GET` and `HEAD` get 405. @default false */
  readonly readOnly?: boolean | undefined;
  /** Maximum size of a request body, in bytes; a larger one gets 413. @default 1_000_000 */
  readonly maxBodyBytes?: number | undefined;
  /** Maximum number of tasks that one request enqueues; more get 413. At least 1. @default 1_000 */
  readonly maxTasksPerRequest?: number | undefined;
  /** Shows a payload. If it throws, the payload is shown as `cannot be shown`. @default as text, if it is text */
  readonly formatPayload?: ((payload: Uint8Array, taskType: string) => string) | undefined;
  /** Shows a result. If it throws, the result is shown as `cannot be shown`. @default as text, if it is text */
  readonly formatResult?: ((result: Uint8Array, taskType: string) => string) | undefined;
  /** Maximum number of characters that are shown of a payload, at most 1 000 000. @default 200 */
  readonly maxPayloadLength?: number | undefined;
  /** Maximum number of characters that are shown of a result, at most 1 000 000. @default 200 */
  readonly maxResultLength?: number | undefined;
  /** URL of a Prometheus server that serves the queries of asynqmon's charts. @default none: 404 */
  readonly prometheusUrl?: string | URL | undefined;
  /**
   * Returns the content of asynqmon's page on Redis.
   *
   * @default none: 404
   * @example () => redisBroker.redisInfo()
   */
  readonly redisInfo?: (() => Promise<RedisInfo>) | undefined;
  /**
   * Called for errors that are not the client's: those with a response of 500, and those in a part of a response. Its own errors
   * and rejections become warnings of the process.
   *
   * @default a warning of the process
   */
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
}

/** More than that is not read by anyone. */
const MAX_SHOWN_LENGTH = 1_000_000;

const OPTIONS = {
  broker: [requireBroker],
  rootPath: [requireRootPath, ''],
  authorize: [requireFunction, undefined],
  allowedHosts: [requireAllowedHosts, []],
  readOnly: [requireBoolean, false],
  maxBodyBytes: [integer(0), 1_000_000],
  maxTasksPerRequest: [integer(1), 1_000],
  formatPayload: [requireFunction, undefined],
  formatResult: [requireFunction, undefined],
  maxPayloadLength: [integer(1, MAX_SHOWN_LENGTH), 200],
  maxResultLength: [integer(1, MAX_SHOWN_LENGTH), 200],
  prometheusUrl: [requireHttpUrl, undefined],
  redisInfo: [requireFunction, undefined],
  onError: [requireFunction, warn],
} satisfies OptionTable<TasksHandlerOptions>;

/** The options with every default filled in; `onError` never throws. */
export type ResolvedTasksHandlerOptions = Resolved<TasksHandlerOptions, typeof OPTIONS>;

export function resolveHandlerOptions(options: TasksHandlerOptions): ResolvedTasksHandlerOptions {
  const resolved = readOptions('tasksHandler', options, OPTIONS);
  const { rootPath, allowedHosts, onError } = resolved;
  return {
    ...resolved,
    rootPath: rootPath.replace(/\/$/, ''),
    allowedHosts: normalizeHosts(allowedHosts),
    onError: neverThrowing(onError),
  };
}

export function requireRootPath(argument: string, value: unknown): void {
  requireString(argument, value);
  if (value !== '' && !value.startsWith('/')) throw wrongValue(argument, "empty, or begin with '/'", value);
}

export function neverThrowing<R>(
  onError: (error: unknown, request: R) => unknown,
): (error: unknown, request: R) => void {
  return (error, request) => {
    try {
      const returned = onError(error, request);
      if (isThenable(returned)) Promise.resolve(returned).catch(warn);
    } catch (another) {
      warn(another);
    }
  };
}

export function warn(error: unknown): void {
  process.emitWarning(printable(error));
}

/** A warning is printed in a later turn, where a getter that throws would end the process; so the error is read here first. */
function printable(error: unknown): Error | string {
  try {
    const text = String(error);
    return error instanceof Error && typeof error.stack === 'string' ? error : text;
  } catch {
    return 'an error that cannot be shown';
  }
}
