import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { bodyOf } from './body.ts';
import type { ImageJobs } from './image-jobs.ts';
import { imageUrl, jobUrl, jobView } from './job-view.ts';

/** A request that has found its route. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The part of the path that names something. */
  readonly id: string;
  readonly query: URLSearchParams;
  readonly jobs: ImageJobs;
  readonly maxBytes: number;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  readonly action: (exchange: Exchange) => Promise<void>;
}

const DEFAULT_WIDTHS = ['640', '320', '96'];
const DEFAULT_RECIPIENT = 'everybody';

export const ROUTES: readonly Route[] = [
  { method: 'POST', path: /^\/images$/, action: acceptImage },
  { method: 'GET', path: /^\/images\/([^/]+)$/, action: sendImage },
  { method: 'GET', path: /^\/jobs\/([^/]+)$/, action: showJob },
  { method: 'GET', path: /^\/jobs\/([^/]+)\/wait$/, action: waitForJob },
];

async function acceptImage({ request, response, query, jobs, maxBytes }: Exchange): Promise<void> {
  const asked = query.getAll('width');
  const widths = (asked.length === 0 ? DEFAULT_WIDTHS : asked).map(Number);
  const notify = query.get('notify') ?? DEFAULT_RECIPIENT;
  const id = await jobs.accept({ widths: [...new Set(widths)], notify }, bodyOf(request, maxBytes));
  response.setHeader('location', jobUrl(id));
  sendJson(response, 202, { id, job: jobUrl(id), images: widths.map((width) => imageUrl(id, width)) });
}

async function showJob({ response, id, jobs }: Exchange): Promise<void> {
  sendJson(response, 200, jobView(await jobs.job(id)));
}

/** Waits no longer than the client does. */
async function waitForJob({ response, id, jobs }: Exchange): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  sendJson(response, 200, jobView(await jobs.finished(id, gone.signal)));
}

async function sendImage({ response, id, query, jobs }: Exchange): Promise<void> {
  const file = await jobs.image(id, Number(query.get('width') ?? DEFAULT_WIDTHS[0]));
  response.writeHead(200, { 'content-type': 'image/webp' });
  await pipeline(file.createReadStream(), response);
}

export function sendJson(response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(`${JSON.stringify(value)}\n`);
}
