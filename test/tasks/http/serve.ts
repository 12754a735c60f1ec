import { request as httpRequest, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { listen } from '../../listen.ts';
import { openBench, test as withBench, type Bench } from '../support/bench.ts';

/** An answer, as a client sees it. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Undefined if it is not JSON. */
  readonly json: unknown;
  /** Of the server. */
  readonly port: number;
}

export interface Request {
  readonly method?: string;
  readonly body?: unknown;
  /** A body is JSON unless they name another content type; undefined leaves a header out. */
  readonly headers?: Record<string, string | undefined>;
}

/** Sends a request just as it is written: `fetch` would clean its path up. */
export type Send = (path: string, request?: Request) => Promise<Answer>;

/** Serves requests, for the length of the test. */
export async function serve(listener: RequestListener): Promise<Send> {
  const port = await listen(listener);
  return (path, request = {}) => send(port, path, request);
}

/** A handler behind a framework that reads bodies of JSON first, and calls it in a later turn. */
export function behindParser(handler: RequestListener): RequestListener {
  return (request, response) => {
    void text(request).then((read) => {
      const body: unknown = read === '' ? undefined : JSON.parse(read);
      setImmediate(() => {
        handler(Object.assign(request, { body }), response);
      });
    });
  };
}

/** A test with a bench of its own, which is served. */
export const test = withBench.extend('send', ({ broker }) => serve(tasksHandler({ broker })));

/** A bench, and what its tasks look like from outside. */
export async function serveTasks(
  options: Partial<TasksHandlerOptions> = {},
): Promise<Bench & { readonly send: Send }> {
  const bench = await openBench();
  return { ...bench, send: await serve(tasksHandler({ broker: bench.broker, ...options })) };
}

/** The same, with the errors that are reported. */
export async function serveReporting(
  options: Partial<TasksHandlerOptions> = {},
): Promise<Awaited<ReturnType<typeof serveTasks>> & { readonly reported: unknown[] }> {
  const reported: unknown[] = [];
  return { ...(await serveTasks({ onError: (error) => reported.push(error), ...options })), reported };
}

function send(port: number, path: string, { method = 'GET', body, headers = {} }: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const json: Request['headers'] = body === undefined ? {} : { 'content-type': 'application/json' };
    const given = Object.entries({ ...json, ...headers }).filter(([, value]) => value !== undefined);
    const options = { host: '127.0.0.1', port, path, method, agent: false };
    const sent = httpRequest({ ...options, headers: Object.fromEntries(given) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = response.headers['content-type']?.startsWith('application/json') === true;
        const json: unknown = isJson && text !== '' ? JSON.parse(text) : undefined;
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json, port });
      });
    });
    sent.on('error', reject);
    sent.end(
      body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    );
  });
}
