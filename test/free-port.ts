import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that systems choose for connections and for servers that listen on port 0, and above those that `fetch` refuses. */
const [FIRST, LAST] = [11_000, 32_000];

/**
 * Returns a port of the loopback, at most `last`, that no program listens on. The system gives it to no other program before the caller
 * listens on it, however long that takes.
 */
export async function freePort(last = LAST): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (Math.min(last, LAST) - FIRST + 1));
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false, // another program listens on it
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
