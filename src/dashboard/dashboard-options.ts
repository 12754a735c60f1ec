import type { IncomingMessage } from 'node:http';
import { withCode, wrongType } from '../core/errors.ts';
import { readOptions, type Check, type OptionTable, type Resolved } from '../core/options.ts';
import { requireBoolean, requireFunction, requireMethods, requireString } from '../core/validate.ts';
import { requireBroker } from '../tasks/argument-checks.ts';
import type { Broker } from '../tasks/broker/broker.ts';
import { normalizeHosts, requireAllowedHosts } from '../tasks/http/request-guard.ts';
import { neverThrowing, requireRootPath, warn } from '../tasks/http/tasks-handler-options.ts';
import type { DiskQueueShown, PurgatoryShown, TimerShown, WorkQueueShown } from './runtime-parts.ts';

/** A request as the program has received it: Node's, or that of `fetch`. */
export type DashboardRequest = IncomingMessage | Request;

/**
 * Result of `authorize`: everything is allowed; nothing is (403); only reading is; nothing is before the client has sent credentials
 * (401, with a challenge for the header `WWW-Authenticate`); or only some changes are.
 */
export type Access =
  | boolean
  | 'read-only'
  | {
      /** Value of the header `WWW-Authenticate`: `Basic realm="jobs"`. */
      readonly challenge: string;
    }
  | {
      /** The changes that are allowed, besides reading: each a `DashboardAction`. With any other string the response is 500. */
      readonly actions: readonly string[];
    };

/** Options of `dashboard`: at least one of `broker`, `timers`, `purgatories`, `workQueues` and `diskQueues`. */
export interface DashboardOptions {
  /** The broker whose queues and tasks are shown. The dashboard does not close it. @default none */
  readonly broker?: Broker | undefined;
  /** Timers whose wheels are shown. @default none */
  readonly timers?: readonly TimerShown[] | undefined;
  /** Purgatories that are shown. @default none */
  readonly purgatories?: readonly PurgatoryShown[] | undefined;
  /** Work queues that are shown. @default none */
  readonly workQueues?: readonly WorkQueueShown[] | undefined;
  /** Disk queues that are shown. @default none */
  readonly diskQueues?: readonly DiskQueueShown[] | undefined;
  /** Path where the dashboard is mounted; empty if the framework removes it from the URL, as Express does. @default '' */
  readonly rootPath?: string | undefined;
  /** Title of the page. @default 'escapement' */
  readonly title?: string | undefined;
  /** Whether all changes are disabled, whatever `authorize` returns. @default false */
  readonly readOnly?: boolean | undefined;
  /**
   * Decides what a request may do; called for each one, of the page's files too. If it throws, rejects, or returns something other than
   * an {@link Access}, the response is 500. It may take the request of its framework: `(request: ExpressRequest) => …`.
   *
   * @default everything is allowed, to a host of `allowedHosts`: for a server that only you can reach
   * @example (request) => isAdmin(request) || (isStaff(request) && 'read-only')
   */
  readonly authorize?:
    | { authorize(request: DashboardRequest): Access | Promise<Access> }['authorize']
    | undefined;
  /**
   * Host names by which browsers reach the server, without scheme and port; `'*'` allows every name. `localhost`, names that end in
   * `.localhost`, and IP addresses are always allowed. The response to a request with another `Host` is 403: an attacker may have
   * pointed that name at this server (DNS rebinding).
   *
   * @default ['*'] with `authorize`, [] without
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /**
   * Called for errors that are not the client's. Its own errors and rejections become warnings of the process.
   *
   * @default a warning of the process
   */
  readonly onError?: ((error: unknown, request: DashboardRequest | undefined) => void) | undefined;
}

const OPTIONS = {
  broker: [requireBroker, undefined],
  timers: [eachWith('a SystemTimer', 'schedule', 'inspect'), []],
  purgatories: [eachWith('a DelayedOperationPurgatory', 'inspect'), []],
  workQueues: [eachWith('a WorkQueue', 'inspect'), []],
  diskQueues: [eachWith('a DiskQueue', 'inspect'), []],
  rootPath: [requireRootPath, ''],
  title: [requireString, 'escapement'],
  readOnly: [requireBoolean, false],
  authorize: [requireFunction, undefined],
  allowedHosts: [requireAllowedHosts, undefined],
  onError: [requireFunction, undefined],
} satisfies OptionTable<DashboardOptions>;

/** The options with every default filled in; `onError` never throws. */
export interface ResolvedDashboardOptions extends Omit<
  Resolved<DashboardOptions, typeof OPTIONS>,
  'allowedHosts' | 'authorize' | 'onError'
> {
  readonly allowedHosts: readonly string[];
  readonly authorize: ((request: DashboardRequest) => unknown) | undefined;
  readonly onError: (error: unknown, request: DashboardRequest | undefined) => void;
}

/** @throws TypeError or RangeError - an option is invalid, or there is nothing to show. */
export function resolveDashboardOptions(
  options: DashboardOptions,
  hasOtherSource = false,
): ResolvedDashboardOptions {
  const { rootPath, allowedHosts, ...resolved } = readOptions('dashboard', options, OPTIONS);
  const { broker, timers, purgatories, workQueues, diskQueues } = resolved;
  const parts = [...timers, ...purgatories, ...workQueues, ...diskQueues];
  if (broker === undefined && parts.length === 0 && !hasOtherSource) {
    const names = 'broker, timers, purgatories, workQueues and diskQueues';
    throw withCode(
      new TypeError(`dashboard: options must have at least one of ${names}`),
      'ERR_INVALID_ARG_VALUE',
    );
  }
  const byDefault = options.authorize === undefined ? [] : ['*'];
  return {
    ...resolved,
    broker,
    rootPath: rootPath.replace(/\/$/, ''),
    allowedHosts: normalizeHosts(allowedHosts ?? byDefault),
    authorize: options.authorize?.bind(options),
    onError: neverThrowing(options.onError?.bind(options) ?? warn),
  };
}

function eachWith(description: string, ...methods: readonly string[]): Check {
  return (argument, value) => {
    if (!Array.isArray(value)) throw wrongType(argument, 'an array', value);
    for (const [at, part] of (value as unknown[]).entries()) {
      requireMethods(`${argument}[${at}]`, description, methods, part);
    }
  };
}
