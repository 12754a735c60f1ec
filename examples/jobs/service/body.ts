import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

/**
 * The body of a request, as long as it is not too long. The request is not destroyed then: its client is still to read
 * why it was refused.
 */
export async function* bodyOf(request: IncomingMessage, maxBytes: number): AsyncGenerator<Uint8Array> {
  if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes);
  let bytes = 0;
  const chunks: AsyncIterable<Uint8Array> = request.iterator({ destroyOnReturn: false });
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
  if (bytes === 0) throw new HttpError(400, 'there is no image in the body');
}

function tooLarge(maxBytes: number): HttpError {
  return new HttpError(413, `an image may have ${maxBytes} bytes`);
}
