import { onTestFinished } from 'vitest';
import { dashboard, type Dashboard, type DashboardOptions } from 'escapement/dashboard';
import { serve, type Answer, type Request, type Send } from '../tasks/http/serve.ts';
import { openBench, type Bench } from '../tasks/support/bench.ts';

/** A dashboard over HTTP, and a session of it. */
export interface Served {
  readonly board: Dashboard;
  readonly send: Send;
  /** Sends a change as the page does. */
  readonly write: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Request['headers'],
  ) => Promise<Answer>;
}

/** Serves a dashboard, for the length of the test. */
export async function serveBoard(options: DashboardOptions): Promise<Served> {
  const board = dashboard(options);
  onTestFinished(() => board.close());
  const send = await serve(board);
  return { board, send, write: writerOf(send, options.rootPath) };
}

/** A bench, and a dashboard of its broker. */
export async function serveBench(options: Partial<DashboardOptions> = {}): Promise<Bench & Served> {
  const bench = await openBench();
  return { ...bench, ...(await serveBoard({ broker: bench.broker, ...options })) };
}

/** Headers of a change that the page sends. */
export async function tokenHeaders(send: Send, rootPath = ''): Promise<Record<string, string>> {
  const { headers, json } = await send(`${rootPath}/api/session`);
  const cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  return { cookie, 'x-escapement-token': (json as { token: string }).token, 'sec-fetch-site': 'same-origin' };
}

function writerOf(send: Send, rootPath?: string): Served['write'] {
  let token: Promise<Record<string, string>> | undefined;
  return async (method, path, body, headers) => {
    token ??= tokenHeaders(send, rootPath);
    return send(path, { method, body, headers: { ...(await token), ...headers } });
  };
}
