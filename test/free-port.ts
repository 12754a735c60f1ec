import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** Returns a port of the loopback, at most `last`, that no program listens on. */
export async function freePort(last = 65_535): Promise<number> {
  for (;;) {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    if (port <= last) return port;
  }
}
