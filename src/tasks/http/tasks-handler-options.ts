import type { IncomingMessage } from 'node:http';
import { outOfRange, wrongType, wrongValue } from '../../core/errors.ts';
import { isThenable } from '../../core/thenable.ts';
import {
  requireFunction,
  requireIntegerAtLeast,
  requireOptions,
  type OptionNames,
} from '../../core/validate.ts';
import type { Broker } from '../broker/broker.ts';
import { requireBroker } from '../broker/broker-checks.ts';
import type { RedisInfo } from '../redis-info.ts';
import { requireAllowedHosts } from './request-guard.ts';

/** What `authorize` says: yes; no (403); or who are you (401), with what goes into `WWW-Authenticate`. */
export type Authorization = boolean | AuthorizationChallenge;

/** Asks a caller who they are. */
export interface AuthorizationChallenge {
  /** What `WWW-Authenticate` says: `Basic realm="tasks"`. */
  readonly challenge: string;
}

/** Options of {@link tasksHandler}. */
export interface TasksHandlerOptions {
  /** What is shown and changed. */
  readonly broker: Broker;
  /** Where it is mounted, without `/api`; not if the framework takes it off the URL. @default '' */
  readonly rootPath?: string;
  /**
   * Decides whether a request may be served; called for each one before anything of the broker is read. If it throws, or
   * returns anything else than an {@link Authorization}, the request is answered with 500.
   *
   * @default every request may do everything: for a server that only you can reach
   * @example (request) => request.headers.authorization === `Bearer ${token}` || { challenge: 'Bearer' }
   */
  readonly authorize?: (request: IncomingMessage) => Authorization | Promise<Authorization>;
  /**
   * Host names by which browsers and other clients reach the server, without scheme and port; `'*'` allows every name.
   * `localhost`, what ends in `.localhost`, and IP addresses are always allowed. A request with another `Host` is answered
   * with 403: its name may be one that an attacker has pointed at this server (DNS rebinding).
   *
   * @default []
   * @example ['jobs.example']
   */
  readonly allowedHosts?: readonly string[];
  /** Whether nothing can be changed: anything but `GET` and `HEAD` is answered with 405. @default false */
  readonly readOnly?: boolean;
  /** The longest body that is read, in bytes; a longer one is answered with 413. @default 1_000_000 */
  readonly maxBodyBytes?: number;
  /** How a payload is shown. If it throws, `cannot be shown` is. @default as text, if it is */
  readonly formatPayload?: (payload: Uint8Array, taskType: string) => string;
  /** How a result is shown. If it throws, `cannot be shown` is. @default as text, if it is */
  readonly formatResult?: (result: Uint8Array, taskType: string) => string;
  /** Characters of a payload that are shown. @default 200 */
  readonly maxPayloadLength?: number;
  /** Characters of a result that are shown. @default 200 */
  readonly maxResultLength?: number;
  /** A Prometheus server, for asynqmon's page of charts: its queries are passed on to it. @default none: 404 */
  readonly prometheusUrl?: string | URL;
  /**
   * Returns the content of asynqmon's page on Redis.
   *
   * @default none: 404
   * @example () => redisBroker.redisInfo()
   */
  readonly redisInfo?: () => Promise<RedisInfo>;
  /**
   * Called for errors that are not the caller's: those that are answered with 500, and those that spoil a part of an answer.
   * What it throws or rejects with is a warning of the process.
   *
   * @default a warning of the process
   */
  readonly onError?: (error: unknown, request: IncomingMessage) => void;
}

const OPTIONS: OptionNames<TasksHandlerOptions> = {
  ...{ broker: true, rootPath: true, authorize: true, allowedHosts: true, readOnly: true },
  ...{ maxBodyBytes: true, formatPayload: true, formatResult: true, maxPayloadLength: true },
  ...{ maxResultLength: true, prometheusUrl: true, redisInfo: true, onError: true },
};

/** The options with every default filled in. */
export interface ResolvedTasksHandlerOptions {
  readonly broker: Broker;
  readonly rootPath: string;
  readonly authorize: TasksHandlerOptions['authorize'];
  readonly allowedHosts: readonly string[];
  readonly readOnly: boolean;
  readonly maxBodyBytes: number;
  readonly formatPayload: TasksHandlerOptions['formatPayload'];
  readonly formatResult: TasksHandlerOptions['formatResult'];
  readonly maxPayloadLength: number;
  readonly maxResultLength: number;
  readonly prometheusUrl: URL | undefined;
  readonly redisInfo: TasksHandlerOptions['redisInfo'];
  /** Never throws. */
  readonly onError: (error: unknown, request: IncomingMessage) => void;
}

const DEFAULT_MAX_BODY_BYTES = 1_000_000;
const DEFAULT_MAX_LENGTH = 200;

/** Nobody can read more than that. */
const MAX_SHOWN_LENGTH = 1_000_000;

/** @throws TypeError or RangeError - an option is wrong. */
export function resolveHandlerOptions(options: TasksHandlerOptions): ResolvedTasksHandlerOptions {
  requireOptions('tasksHandler', options, OPTIONS);
  const {
    broker,
    rootPath = '',
    authorize,
    readOnly = false,
    maxBodyBytes = DEFAULT_MAX_BODY_BYTES,
  } = options;
  const { formatPayload, formatResult, redisInfo, onError = warn } = options;
  const { maxPayloadLength = DEFAULT_MAX_LENGTH, maxResultLength = DEFAULT_MAX_LENGTH } = options;
  requireBroker('options.broker', broker);
  requireRootPath(rootPath);
  if (typeof readOnly !== 'boolean') throw wrongType('options.readOnly', 'a boolean', readOnly);
  requireIntegerAtLeast('options.maxBodyBytes', 0, maxBodyBytes);
  requireLength('options.maxPayloadLength', maxPayloadLength);
  requireLength('options.maxResultLength', maxResultLength);
  const functions = { authorize, formatPayload, formatResult, redisInfo, onError };
  for (const [name, value] of Object.entries(functions)) {
    if (value !== undefined) requireFunction(`options.${name}`, value);
  }
  return {
    ...{ broker, readOnly, maxBodyBytes, maxPayloadLength, maxResultLength, ...functions },
    onError: guarded(onError),
    allowedHosts: requireAllowedHosts(options.allowedHosts ?? []),
    rootPath: rootPath.replace(/\/$/, ''),
    prometheusUrl: prometheusUrlOf(options.prometheusUrl),
  };
}

function requireRootPath(rootPath: unknown): void {
  if (typeof rootPath !== 'string') throw wrongType('options.rootPath', 'a string', rootPath);
  if (rootPath !== '' && !rootPath.startsWith('/')) {
    throw wrongValue('options.rootPath', "empty, or begin with '/'", rootPath);
  }
}

function requireLength(argument: string, value: unknown): void {
  requireIntegerAtLeast(argument, 1, value);
  if (value > MAX_SHOWN_LENGTH) throw outOfRange(argument, `at most ${MAX_SHOWN_LENGTH}`, value);
}

function prometheusUrlOf(value: string | URL | undefined): URL | undefined {
  if (value === undefined) return undefined;
  if (!isHttpUrl(value)) throw wrongValue('options.prometheusUrl', 'a URL of http or https', shown(value));
  return new URL(value);
}

/** Its credentials are decoded for each query: they must be decodable. */
function isHttpUrl(value: string | URL): boolean {
  try {
    const { protocol, username, password } = new URL(value);
    decodeURIComponent(`${username}${password}`);
    return protocol === 'http:' || protocol === 'https:';
  } catch {
    return false;
  }
}

/** Without credentials. */
function shown(url: string | URL): string {
  return String(url).replace(/^([^/]*:\/\/)?.*@/su, '$1***@');
}

function guarded(onError: (error: unknown, request: IncomingMessage) => unknown): typeof onError {
  return (error, request) => {
    try {
      const returned = onError(error, request);
      if (isThenable(returned)) Promise.resolve(returned).catch(warn);
    } catch (another) {
      warn(another);
    }
  };
}

function warn(error: unknown): void {
  process.emitWarning(printable(error));
}

/** A warning is printed on a later turn, where a getter that throws ends the process: so it is read here first. */
function printable(error: unknown): Error | string {
  try {
    const text = String(error);
    return error instanceof Error && typeof error.stack === 'string' ? error : text;
  } catch {
    return 'an error that cannot be shown';
  }
}
