import { randomBytes, timingSafeEqual } from 'node:crypto';
import { wrongType } from '../core/errors.ts';
import { HttpError, ofApplication, unauthorized } from '../tasks/http/http-error.ts';
import { RequestGuard } from '../tasks/http/request-guard.ts';
import { isRead } from '../tasks/http/route-table.ts';
import { DASHBOARD_ACTIONS, type DashboardAction } from './dashboard-json.ts';
import type { ResolvedDashboardOptions } from './dashboard-options.ts';
import type { Incoming } from './exchange.ts';

/**
 * Decides what a request may do.
 *
 *   request          must have
 *   any              a Host that is allowed
 *   read of the API  no Sec-Fetch-Site, or same-origin, or none: no page of another site starts a search
 *   write            Sec-Fetch-Site: same-origin, or an Origin that matches Host; without either it is refused
 *   write            the header x-escapement-token with the value of the cookie of that name
 *   write            an action that `authorize` allows; none with `readOnly`
 *
 * The token is not stored, so that several processes may serve one name: a page of another site can neither read the cookie nor set
 * the header.
 */
export class AccessControl {
  readonly #options: ResolvedDashboardOptions;
  readonly #guard: RequestGuard;

  constructor(options: ResolvedDashboardOptions) {
    this.#options = options;
    this.#guard = new RequestGuard(options.allowedHosts, 'dashboard');
  }

  /** Returns the changes that a request may make. @throws HttpError 401, 403 or 500. */
  async admit(incoming: Incoming, isApi: boolean): Promise<ReadonlySet<DashboardAction>> {
    const { method, headers } = incoming.head;
    this.#guard.check(incoming.head, isRead(method));
    if (isApi && isRead(method)) requireOwnPage(headers['sec-fetch-site']);
    const { authorize, onError, readOnly } = this.#options;
    if (authorize === undefined) return new Set(readOnly ? [] : DASHBOARD_ACTIONS);
    const report = (error: unknown): void => {
      onError(error, incoming.original);
    };
    const verdict = await ofApplication(report, async () => actionsOf(await authorize(incoming.original)));
    if (verdict instanceof HttpError) throw verdict;
    return new Set(readOnly ? [] : verdict);
  }

  /** @throws HttpError 403 - the request is not one of the page. */
  requireToken({ head: { headers } }: Incoming): void {
    if (headers['sec-fetch-site'] === undefined && headers.origin === undefined) {
      throw new HttpError(403, 'a change needs the header Origin or Sec-Fetch-Site');
    }
    const token = headers[TOKEN_NAME];
    const cookies = tokensOf(headers.cookie);
    if (typeof token === 'string' && cookies.some((cookie) => areEqual(cookie, token))) return;
    throw new HttpError(403, `the header ${TOKEN_NAME} does not match the cookie: reload the page`);
  }
}

const TOKEN_NAME = 'x-escapement-token';

const TOKEN_BYTES = 32;

const TOKEN = /^[\w-]{43}$/;

/** Returns the token of a session, and the header that sets its cookie if there is none. */
export function tokenOf({ head }: Incoming): { token: string; headers: Readonly<Record<string, string>> } {
  const [cookie] = tokensOf(head.headers.cookie);
  if (cookie !== undefined) return { token: cookie, headers: {} };
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  return { token, headers: { 'set-cookie': `${TOKEN_NAME}=${token}; HttpOnly; SameSite=Strict` } };
}

/** Dashboards at several paths of a host have a cookie each, and a browser may send more than one. */
function tokensOf(cookies: string | undefined): readonly string[] {
  const pairs = (cookies ?? '').split(';').map((pair) => pair.trim().split('='));
  return pairs.flatMap(([name, value = '']) => (name === TOKEN_NAME && TOKEN.test(value) ? [value] : []));
}

function areEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** A browser sends the header for every request of a page; a person who opens the URL has `none`. */
function requireOwnPage(site: string | string[] | undefined): void {
  if (site === undefined || site === 'same-origin' || site === 'none') return;
  throw new HttpError(403, 'a page of another origin may not read this');
}

/** Returns an error for a request that is refused. @throws TypeError - the verdict is not an `Access`. */
function actionsOf(verdict: unknown): readonly DashboardAction[] | HttpError {
  if (verdict === true) return DASHBOARD_ACTIONS;
  if (verdict === false) return new HttpError(403, 'forbidden');
  if (verdict === 'read-only') return [];
  const refusal = unauthorized(verdict);
  if (refusal !== undefined) return refusal;
  const actions = (verdict as { actions?: unknown } | null | undefined)?.actions;
  if (Array.isArray(actions) && actions.every(isAction)) return actions;
  const kinds = "a boolean, 'read-only', a challenge that is a header value, or actions";
  throw wrongType('the result of authorize', kinds, verdict);
}

function isAction(word: unknown): word is DashboardAction {
  return (DASHBOARD_ACTIONS as readonly unknown[]).includes(word);
}
