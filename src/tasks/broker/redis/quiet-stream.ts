import type { Redis } from 'ioredis';

/**
 * Lets the sockets of a client fail more than once. ioredis listens to the first error of each only, and a second one, as when
 * a TLS handshake is broken off, would be an uncaught exception. There is no moment at which we could come after every first
 * error and before every second one, so we are there when the client gets its socket.
 */
export function withQuietStream<C extends Redis>(client: C): C {
  let { stream } = client;
  Object.defineProperty(client, 'stream', {
    configurable: true,
    enumerable: true,
    get: () => stream,
    set: (next: Redis['stream']) => {
      stream = next;
      next.on('error', ignore);
    },
  });
  return client;
}

function ignore(): void {
  // The first one has been told.
}
