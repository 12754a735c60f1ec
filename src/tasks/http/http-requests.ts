import { wrongValue } from '../../core/errors.ts';
import { withoutCredentials } from '../without-credentials.ts';

/* URLs of HTTP servers: of the tasks API, and of Prometheus. Users may put credentials into them. */

/** @throws TypeError - it is not a URL of http or https. The message has no credentials. */
export function requireHttpUrl(argument: string, value: unknown): void {
  if (isHttpUrl(value)) return;
  const isUrl = typeof value === 'string' || value instanceof URL;
  throw wrongValue(argument, 'a URL of http or https', isUrl ? withoutCredentials(value) : value);
}

/** The credentials are decoded for each request, so they must be decodable. */
function isHttpUrl(value: unknown): boolean {
  try {
    const { protocol, username, password } = new URL(value as string | URL);
    decodeURIComponent(`${username}${password}`);
    return protocol === 'http:' || protocol === 'https:';
  } catch {
    return false;
  }
}

/** Returns the headers for the credentials in a URL: `fetch` rejects a URL that has them. */
export function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` };
}

/** Returns where the handler is mounted, without credentials: for messages, and for requests to `{root}`. */
export function apiAt({ origin, pathname }: URL): { readonly name: string; readonly root: string } {
  const path = withoutTrailingSlashes(pathname);
  const name = `${origin}${path}`;
  return { name, root: `${name}${path.endsWith('/api') ? '' : '/api'}` };
}

/** A loop, because `/\/+$/` takes quadratic time on a path of slashes that does not end with one. */
function withoutTrailingSlashes(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end--;
  return path.slice(0, end);
}
