import { request } from 'node:http';
import { onTestFinished } from 'vitest';

/** A response that comes piece by piece. */
export interface OpenStream {
  readonly status: number;
  /** Reads up to and with the next separator; undefined at the end. */
  readonly next: () => Promise<string | undefined>;
  /** Disconnects. */
  readonly leave: () => void;
}

/** Opens a stream, until the test has finished. */
export function openStream(
  port: number,
  path: string,
  { separator = '\n\n', method = 'GET', headers = {}, body = '' } = {},
): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
      let text = '';
      const next = async (): Promise<string | undefined> => {
        while (!text.includes(separator)) {
          const chunk = await chunks.next();
          if (chunk.done === true) return undefined;
          text += chunk.value.toString();
        }
        const end = text.indexOf(separator) + separator.length;
        const part = text.slice(0, end);
        text = text.slice(end);
        return part;
      };
      resolve({ status: response.statusCode ?? 0, next, leave: () => response.destroy() });
    });
    sent.on('error', reject);
    onTestFinished(() => void sent.destroy());
    sent.end(body);
  });
}

/** Returns the data of the next event, without comments. */
export async function nextEvent({ next }: OpenStream): Promise<unknown> {
  for (let event = await next(); event !== undefined; event = await next()) {
    if (event.startsWith('data: ')) return JSON.parse(event.slice('data: '.length));
  }
  return undefined;
}

/** Returns all lines of JSON. */
export async function allLines({ next }: OpenStream): Promise<unknown[]> {
  const lines: unknown[] = [];
  for (let line = await next(); line !== undefined; line = await next()) lines.push(JSON.parse(line));
  return lines;
}
