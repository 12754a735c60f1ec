import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { parseBody, readJson } from '../tasks/http/call.ts';
import type { DashboardRequest } from './dashboard-options.ts';

/*
 * Requests and responses as the dashboard sees them, and how they are read from Node's and from those of `fetch`.
 *
 * A stream is a function that makes its pieces one after the other. It makes the next one when the client has taken the one
 * before, so that nothing is buffered for a client that does not read; after MAX_STALL_MS such a client is disconnected.
 */

/** Maximum size of the body of a request, in bytes. */
const MAX_BODY_BYTES = 1_000_000;

/** How long a client may take to read a piece of a stream, in milliseconds. */
const MAX_STALL_MS = 30_000;

/** A request. */
export interface Incoming {
  readonly head: {
    readonly method: string;
    /** The path with the query. */
    readonly url: string;
    readonly headers: IncomingHttpHeaders;
  };
  /** The path as the client has sent it, if a framework has removed a part of it. */
  readonly originalUrl: string;
  /** What `authorize` gets. */
  readonly original: DashboardRequest;
  /** Reads the body. @throws HttpError 400 or 413. */
  json(): Promise<unknown>;
}

/** Makes a body piece by piece. Ends soon after the signal fires: the client has left, or the dashboard is closed. */
export type Stream = (signal: AbortSignal) => AsyncIterable<Uint8Array>;

/** A response. */
export interface Outgoing {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** None if the response has no body. */
  readonly body?: Uint8Array | Stream;
}

export function incomingOfNode(request: IncomingMessage): Incoming {
  const { method = 'GET', url = '/', headers } = request;
  const { originalUrl } = request as { originalUrl?: unknown };
  return {
    head: { method, url, headers },
    originalUrl: typeof originalUrl === 'string' ? originalUrl : url,
    original: request,
    json: () => readJson(request, MAX_BODY_BYTES),
  };
}

/**
 * The header `Host` is what the client has sent. The host of the URL may be that which a framework listens on, as with Next.js. That
 * also removes `Content-Encoding` from each response, so nothing is compressed here.
 */
export function incomingOfFetch(request: Request): Incoming {
  const { method, headers } = request;
  const { host, pathname, search } = new URL(request.url);
  const url = `${pathname}${search}`;
  const body = (request.body ?? []) as AsyncIterable<Uint8Array>;
  return {
    head: { method, url, headers: { host, ...Object.fromEntries(headers), 'accept-encoding': '' } },
    originalUrl: url,
    original: request,
    json: () => parseBody(body, headers.get('content-length'), MAX_BODY_BYTES),
  };
}

/**
 * Sends a response. Does nothing if the client has disconnected.
 *
 * @returns a promise that settles when the body has been sent or the client has left. It rejects with the error of a stream, after the
 * connection was broken.
 */
export async function sendToNode(
  outgoing: Outgoing,
  request: IncomingMessage,
  response: ServerResponse,
  controller: AbortController,
): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  const { status, headers, body } = outgoing;
  const { connection, ...rest } = headers;
  const isHttp1 = request.httpVersionMajor < 2; // HTTP/2 forbids the header
  response.writeHead(status, {
    ...rest,
    ...(connection !== undefined && isHttp1 && { connection }),
    ...(body instanceof Uint8Array && { 'content-length': body.length }),
  });
  if (typeof body !== 'function') {
    response.end(body);
    return;
  }
  const leave = (): void => {
    controller.abort();
  };
  response.once('close', leave);
  response.on('error', leave);
  response.flushHeaders();
  try {
    for await (const piece of body(controller.signal)) {
      if (!response.write(piece)) await drained(response, controller.signal);
      if (controller.signal.aborted) break;
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    response.off('close', leave);
  }
}

/** Resolves when the client has read, or when the signal fires: it has left, or has not read for too long and is disconnected. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const stalled = setTimeout(() => {
    response.destroy();
  }, MAX_STALL_MS);
  stalled.unref();
  await once(response, 'drain', { signal }).catch(() => undefined);
  clearTimeout(stalled);
}

/** Returns a response for `fetch`. @param onEnd - called when the body has been read or the client has left, with the error of a stream. */
export function responseOf(
  { status, headers, body }: Outgoing,
  controller: AbortController,
  onEnd: (error?: unknown) => void,
): Response {
  if (typeof body !== 'function') {
    onEnd();
    return new Response(body ?? null, { status, headers });
  }
  const pieces = body(controller.signal)[Symbol.asyncIterator]();
  const { signal } = controller;
  let stalled: NodeJS.Timeout | undefined;
  const leave = (): void => {
    clearTimeout(stalled);
    // A stream that waits for its reader would never end, and the broker be read every second for it.
    pieces.return?.().catch(() => undefined);
    onEnd();
  };
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  let isCancelled = false; // from then on, a call of the stream throws
  const source: ConstructorParameters<typeof ReadableStream<Uint8Array>>[0] = {
    async pull(stream) {
      clearTimeout(stalled);
      try {
        const piece = await pieces.next();
        if (isCancelled) return;
        if (piece.done === true) {
          stream.close();
          onEnd();
          return;
        }
        stream.enqueue(piece.value);
        stalled = setTimeout(() => {
          controller.abort();
          stream.error(new Error('the client has not read for too long'));
        }, MAX_STALL_MS);
        stalled.unref();
      } catch (error) {
        if (isCancelled) return;
        stream.error(error);
        onEnd(error);
      }
    },
    cancel() {
      isCancelled = true;
      controller.abort();
    },
  };
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { status, headers });
}
