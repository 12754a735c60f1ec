import type { Stream } from './exchange.ts';
import type { Sampler } from './sampler.ts';

/** A comment in the stream, so that no proxy takes a connection for idle, in milliseconds. */
const COMMENT_MS = 15_000;

const RETRY = Buffer.from('retry: 1000\n\n');
const COMMENT = Buffer.from(':\n\n');

/**
 * Returns the server-sent events of a client. All clients get the same bytes. A client that is slower than the events misses some:
 * the next one that it gets is the latest.
 */
export function liveStream(sampler: Sampler): Stream {
  return async function* events(signal) {
    sampler.join();
    try {
      let sent: Uint8Array | undefined;
      yield RETRY;
      while (!signal.aborted) {
        const { event } = sampler;
        if (event !== undefined && event !== sent) {
          sent = event;
          yield event;
        } else {
          const isIdle = await sampler.isIdleFor(COMMENT_MS, signal);
          if (isIdle) yield COMMENT;
        }
      }
    } finally {
      sampler.leave();
    }
  };
}
