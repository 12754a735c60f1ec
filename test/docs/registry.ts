import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';

const MODULES = join(import.meta.dirname, '../../node_modules');

/** An npm registry on this machine. */
export interface Registry extends AsyncDisposable {
  readonly url: string;
}

/**
 * Starts a registry with the packages that are installed here, and one more that was packed. So `npm install` runs as it is written in a
 * document, without a network.
 *
 * @param packed - Name of that package, and path of its archive.
 */
export async function startRegistry(packed: {
  name: string;
  manifest: object;
  archive: string;
}): Promise<Registry> {
  const server = createServer(({ url: path = '/' }, response) => {
    const [, name = '', isArchive] = /^\/(.+?)(\.tgz)?$/.exec(decodeURIComponent(path)) ?? [];
    try {
      if (isArchive !== undefined)
        response.end(name === packed.name ? readFileSync(packed.archive) : archiveOf(name));
      else sendPackument(response, name, name === packed.name ? packed.manifest : manifestOf(name));
    } catch {
      response.writeHead(404).end();
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function sendPackument(response: ServerResponse, name: string, manifest: object): void {
    const { version } = manifest as { version: string };
    const dist = { tarball: `${url}/${name}.tgz` };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: version },
        versions: { [version]: { ...manifest, dist } },
      }),
    );
  }

  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url, [Symbol.asyncDispose]: close };
}

function manifestOf(name: string): object {
  return JSON.parse(readFileSync(join(MODULES, name, 'package.json'), 'utf8')) as object;
}

function archiveOf(name: string): Buffer {
  const folder = join(MODULES, name);
  return execFileSync('tar', ['-czf', '-', '-C', dirname(folder), basename(folder)], { maxBuffer: 2 ** 26 });
}
