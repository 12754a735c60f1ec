import { request } from 'node:http';
import { onTestFinished } from 'vitest';
import type { LiveJson } from '../../src/dashboard/dashboard-json.ts';
import type { Answer, Send } from '../tasks/http/serve.ts';

/** A response that comes piece by piece. */
export interface OpenStream {
  readonly status: number;
  /** Reads up to and with the next separator; undefined at the end. */
  readonly next: () => Promise<string | undefined>;
  /** Disconnects. */
  readonly leave: () => void;
}

/** Opens a stream, until the test has finished. */
export function openStream(port: number, path = '/api/live', separator = '\n\n'): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
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
    sent.end();
  });
}

/** Opens the stream of events of the server that answers `send`. */
export async function openEvents(send: Send): Promise<OpenStream> {
  return openStream((await send('/api/session')).port);
}

/** Returns the data of the next event, without comments; undefined at the end. */
export async function nextEvent({ next }: OpenStream): Promise<LiveJson | undefined> {
  for (let event = await next(); event !== undefined; event = await next()) {
    if (event.startsWith('data: ')) return JSON.parse(event.slice('data: '.length)) as LiveJson;
  }
  return undefined;
}

/** Returns the first event that is as it should be. */
export async function eventWith(
  stream: OpenStream,
  isRight: (live: LiveJson) => boolean,
): Promise<LiveJson | undefined> {
  let event = await nextEvent(stream);
  while (event !== undefined && !isRight(event)) event = await nextEvent(stream);
  return event;
}

/** Returns the lines of JSON of an answer. */
export function linesOf({ text }: Answer): unknown[] {
  return text
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}
