import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { wrongType, wrongValue } from '../../core/errors.ts';
import { requireString } from '../../core/validate.ts';
import { HttpError } from './http-error.ts';

/** Allows every host. */
const ANY_HOST = '*';

/** Maximum number of characters of a `Host` in a message. */
const SHOWN_CHARACTERS = 100;

/** A name or an address, and a port; nothing that a URL parser would rewrite. */
const HOST = /^(\[[0-9a-f:.]+\]|[^\s/:?#@\\[\]%]+)(?::\d{1,5})?$/i;

/** What the checks read of a request. */
type RequestHead = Pick<IncomingMessage, 'headers' | 'url'>;

const ORIGIN = /^(https?):\/\/([^/]+)$/i;

const JSON_TYPE = /^application\/json[\t ]*(?:;|$)/i;

/**
 * Refuses requests that a browser may send for the page of another site.
 *
 * HOW: three checks, none of which needs the credentials of the request, which a browser adds by itself.
 *
 *   request    header                        must be
 *   any        Host, or the URL's authority  an IP address, localhost, or listed
 *   write      Sec-Fetch-Site                same-origin
 *   write      Origin, without the above     the scheme and the Host of the request
 *   write      Content-Type                  application/json; absent where no body is read
 *
 * WHY: `Host` is the name in the address bar. Under DNS rebinding the name is the attacker's, the address is ours, and the
 * browser takes both for one origin, so that the page can read as well. An address cannot be rebound. `Sec-Fetch-Site` is
 * absent over plain HTTP, except to loopback; `Origin` is present in every write of a browser. A request with neither header
 * is not from a browser. A form cannot send JSON, and a script needs the permission of this server to do so, which it never
 * gives. See https://pkg.go.dev/net/http#CrossOriginProtection, which compares in the same way.
 */
export class RequestGuard {
  readonly #names: ReadonlySet<string>;
  readonly #functionName: string;

  /** @param allowedHosts - from {@link normalizeHosts}. @param functionName - function that has the option, for messages. */
  constructor(allowedHosts: readonly string[], functionName: string) {
    this.#names = new Set(allowedHosts);
    this.#functionName = functionName;
  }

  /** @throws HttpError 403 - the request may come from the page of another site. */
  check(request: RequestHead, isRead: boolean): void {
    const host = hostOf(request);
    if (!this.#isAllowed(host)) {
      const shown = JSON.stringify(host.slice(0, SHOWN_CHARACTERS));
      const allowed = `IP addresses, localhost and the names in the option allowedHosts of ${this.#functionName}`;
      throw new HttpError(403, `the host ${shown} is not allowed. Allowed are ${allowed}`);
    }
    if (!isRead) requireSameOrigin(request.headers, host);
  }

  #isAllowed(host: string): boolean {
    if (this.#names.has(ANY_HOST)) return true;
    const name = withoutDot(HOST.exec(host)?.[1] ?? '').toLowerCase();
    if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
    return name === 'localhost' || name.endsWith('.localhost') || this.#names.has(name);
  }
}

/** @throws HttpError 415 - a form, or a script of any page, could have sent it. */
export function requireJsonType({ headers }: RequestHead, isBodyRead: boolean): void {
  const type = headers['content-type'];
  if (type === undefined ? isBodyRead : !JSON_TYPE.test(type)) {
    throw new HttpError(415, 'the content type must be application/json');
  }
}

export function requireAllowedHosts(argument: string, allowedHosts: unknown): void {
  if (!Array.isArray(allowedHosts)) throw wrongType(argument, 'an array', allowedHosts);
  for (const [at, name] of (allowedHosts as unknown[]).entries()) {
    requireString(`${argument}[${at}]`, name);
    if (asciiName(name) === '' || HOST.exec(name)?.[1] !== name) {
      throw wrongValue(`${argument}[${at}]`, "a host name without scheme and port, or '*'", name);
    }
  }
}

/** Returns host names as browsers send them. */
export function normalizeHosts(allowedHosts: readonly string[]): readonly string[] {
  return allowedHosts.map(asciiName);
}

function asciiName(name: string): string {
  return name === ANY_HOST ? name : domainToASCII(withoutDot(name));
}

/** HTTP/2 has no Host; a URL with a host has precedence over it (RFC 9112, 3.2.2). */
function hostOf({ headers, url = '' }: RequestHead): string {
  const ofUrl = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
  const ofHttp2 = headers[':authority'];
  return ofUrl ?? (typeof ofHttp2 === 'string' ? ofHttp2 : (headers.host ?? ''));
}

function requireSameOrigin(headers: IncomingHttpHeaders, host: string): void {
  const site = headers['sec-fetch-site'];
  const { origin } = headers;
  if (site === undefined && origin === undefined) return;
  if (site === undefined ? isOriginOf(origin ?? '', host) : site === 'same-origin') return;
  const reason = 'a page of another origin may not change anything';
  if (site !== undefined) throw new HttpError(403, `${reason}: Sec-Fetch-Site must be same-origin`);
  throw new HttpError(403, `${reason}: Origin must match Host, which a proxy must pass on unchanged`);
}

/** An Origin has no default port; a proxy may add it to the Host. */
function isOriginOf(origin: string, host: string): boolean {
  const [, scheme = '', authority = ''] = ORIGIN.exec(origin) ?? [];
  const defaultPort = scheme.toLowerCase() === 'https' ? /:443$/ : /:80$/;
  const bare = (text: string): string => text.toLowerCase().replace(defaultPort, '');
  return authority !== '' && bare(authority) === bare(host);
}

function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
