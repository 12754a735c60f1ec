import { pathSegment, type DashboardAction, type ErrorJson, type SessionJson } from '../dashboard-json.ts';

/** Why a request failed, as a sentence for people; `status` 0 if there was no response. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export const CUT_OFF = 'The server of this dashboard cannot be reached.';
const NO_ANSWER = 'The server has not answered for a minute.';
export const LOGGED_OUT = 'Your login has expired.';

/** How long a response may take to begin, in milliseconds: without a limit, a page would wait for ever for one that was lost. */
const ANSWER_LIMIT_MS = 60_000;

export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The path of an API with each part encoded: names of queues and ids of tasks may hold anything. */
export function path(...parts: readonly string[]): string {
  return parts.map(pathSegment).join('/');
}

/** Appends a query, without what is undefined or empty: `search?a=1&b=x&b=y`. */
export function withQuery(to: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue;
    if (typeof value === 'object') for (const one of value) params.append(name, one);
    else params.append(name, String(value));
  }
  return params.size === 0 ? to : `${to}?${params.toString()}`;
}

/** Reads JSON from `api/…`. */
export async function getJson<T>(to: string, signal: AbortSignal | null = null): Promise<T> {
  return (await (await send(to, { signal })).json()) as T;
}

/** Reads JSON and its tag; undefined if it is as it was when it had the tag `etag`. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller names the type of the JSON.
export async function getChanged<T>(
  to: string,
  etag: string,
  signal: AbortSignal,
): Promise<{ readonly data: T; readonly etag: string } | undefined> {
  const response = await send(to, { signal, headers: { 'if-none-match': etag } });
  if (response.status === 304) return undefined;
  return { data: (await response.json()) as T, etag: response.headers.get('etag') ?? '' };
}

let session: SessionJson | undefined;

/** Starts the session of this page. */
export async function openSession(): Promise<SessionJson> {
  return (session = await getJson<SessionJson>('session'));
}

/** Whether the session allows a change. */
export function may(action: DashboardAction): boolean {
  return session?.actions.includes(action) === true;
}

/** Changes something; resolves with the JSON of the response, if it has one. */
export async function write(method: string, to: string, body?: unknown): Promise<unknown> {
  const response = await sendWrite(method, to, body);
  return response.status === 204 ? undefined : await response.json();
}

function sendWrite(
  method: string,
  to: string,
  body: unknown,
  signal: AbortSignal | null = null,
): Promise<Response> {
  return send(to, {
    method,
    headers: { 'content-type': 'application/json', 'x-escapement-token': session?.token ?? '' },
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  });
}

/** Reads a response that is one value of JSON a line, as it comes. A request with a body is a write. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller names the type of its lines.
export async function readLines<T>(
  to: string,
  onLine: (line: T) => void,
  signal: AbortSignal,
  body?: unknown,
): Promise<void> {
  const response =
    body === undefined ? await send(to, { signal }) : await sendWrite('POST', to, body, signal);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = '';
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const lines = (rest + chunk.value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') onLine(JSON.parse(line) as T);
  }
  if (rest !== '') onLine(JSON.parse(rest) as T);
}

async function send(to: string, init: RequestInit): Promise<Response> {
  const limit = new AbortController();
  const timeout = setTimeout(() => limit.abort(), ANSWER_LIMIT_MS);
  const signal = AbortSignal.any([limit.signal, ...(init.signal ? [init.signal] : [])]);
  let response: Response;
  try {
    response = await fetch(`api/${to}`, { credentials: 'same-origin', redirect: 'manual', ...init, signal });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new Failure(limit.signal.aborted ? NO_ANSWER : CUT_OFF, 0);
  } finally {
    clearTimeout(timeout);
  }
  if (response.ok || response.status === 304) return response;
  // The API redirects nowhere: the login of an application does.
  if (response.status === 401 || response.type === 'opaqueredirect') throw new Failure(LOGGED_OUT, 401);
  throw new Failure(await messageOf(response), response.status);
}

/** Whether the server does not allow a request: the login may have expired. */
export function isRefused(error: unknown): boolean {
  return error instanceof Failure && (error.status === 401 || error.status === 403);
}

async function messageOf(response: Response): Promise<string> {
  try {
    return ((await response.json()) as ErrorJson).message;
  } catch {
    return `The server answered with status ${response.status}.`;
  }
}

export function messageOfError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
