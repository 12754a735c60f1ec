import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

/** What an application may have put on the request: another handler has read the body. */
interface ParsedRequest extends IncomingMessage {
  readonly body?: unknown;
}

/** The body as JSON. @throws HttpError 400 - it is none. 413 - it is longer than `maxBytes`. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  if (request.readableEnded) return (request as ParsedRequest).body;
  const bytes = await readBytes(request, maxBytes);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new HttpError(400, 'the body is not JSON');
  }
}

/** The tasks of a batch. @throws HttpError 400 - it is none. */
export function taskIdsOf(body: unknown): readonly string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new HttpError(400, 'the body must be an object');
  }
  const unknown = Object.keys(body).find((name) => name !== 'task_ids');
  if (unknown !== undefined) throw new HttpError(400, `unknown field ${JSON.stringify(unknown)}`);
  const { task_ids: ids } = body as { readonly task_ids?: unknown };
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string')) {
    throw new HttpError(400, 'task_ids must be an array of strings');
  }
  return ids;
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes)
    return Promise.reject(tooLong(request, maxBytes));
  if (request.destroyed) return Promise.reject(new HttpError(400, 'the body has ended early'));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else
        end(() => {
          reject(tooLong(request, maxBytes));
        });
    };
    const complete = (): void => {
      end(() => {
        resolve(Buffer.concat(chunks));
      });
    };
    const fail = (): void => {
      end(() => {
        reject(new HttpError(400, 'the body has ended early'));
      });
    };
    const end = (settle: () => void): void => {
      request.off('data', take).off('end', complete).off('error', fail).off('close', fail);
      settle();
    };
    request.on('data', take).on('end', complete).on('error', fail).on('close', fail);
  });
}

/** What is still to come is not read: so the connection cannot serve another request. */
function tooLong(request: IncomingMessage, maxBytes: number): HttpError {
  request.resume();
  return new HttpError(413, `the body is longer than ${maxBytes} bytes`, { connection: 'close' });
}
