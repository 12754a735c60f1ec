import { HttpError } from './http-error.ts';

/** The methods of routes. */
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** One operation of the interface. Its path is a pattern: `/queues/{queue}/pending_tasks/{task}:archive`. */
export type Route<Action> = readonly [method: Method, path: string, action: Action];

/** Parts of a path by their names in the pattern. */
export type Parameters = Readonly<Record<string, string>>;

/** Result of a look-up: an operation, or the error that is sent after the authorization. */
export type Match<Action> = HttpError | { readonly action: Action; readonly parameters: Parameters };

/**
 * Finds the operation of a path. A path is split at its slashes and at the colon of the verb before it is decoded, so an id may
 * contain both, percent-encoded.
 */
export class RouteTable<Action> {
  readonly #routes: readonly (readonly [method: Method, path: RegExp, action: Action])[];

  constructor(routes: readonly Route<Action>[]) {
    this.#routes = routes.map(([method, path, action]) => [method, regExpOf(path), action]);
  }

  /** Returns undefined if there is no such path. `HEAD` has the operation of `GET`. */
  find(method: string | undefined, path: string): Match<Action> | undefined {
    const matching = this.#routes.filter(([, regExp]) => regExp.test(path));
    if (matching.length === 0) return undefined;
    const route = matching.find(([one]) => one === (method === 'HEAD' ? 'GET' : method));
    if (route === undefined) return notAllowed(method, [...new Set(matching.map(([one]) => one))]);
    const [, regExp, action] = route;
    const parts = Object.entries(regExp.exec(path)?.groups ?? {});
    try {
      const decoded = parts.map(([name, part]) => [name, decodeURIComponent(part)] as const);
      return { action, parameters: Object.fromEntries(decoded) };
    } catch {
      return new HttpError(400, 'malformed percent-encoding in the path');
    }
  }
}

/** The patterns have letters, `/`, `_` and `:` besides their parameters: nothing to escape. */
function regExpOf(pattern: string): RegExp {
  return new RegExp(`^${pattern.replaceAll('{', '(?<').replaceAll('}', '>[^/]+)')}$`);
}

export function isRead(method = ''): boolean {
  return method === 'GET' || method === 'HEAD';
}

export function notAllowed(method = '', allowed: readonly Method[]): HttpError {
  const methods = allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed;
  return new HttpError(405, `${method} is not allowed here`, { allow: methods.join(', ') });
}

/** Scheme and host in front of a path, as a client of a proxy sends it. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/** Returns the path and the query of the URL of a request, as they were written. */
export function splitUrl(url = '/'): readonly [path: string, query: URLSearchParams] {
  const [path = '', ...query] = url.replace(ORIGIN, '').split('?');
  return [path, new URLSearchParams(query.join('?'))];
}
