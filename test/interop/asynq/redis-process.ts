import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A Redis of our own, which keeps nothing. */
export interface RedisProcess {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts `redis-server` on a free port, in a folder of its own. */
export async function startRedis(): Promise<RedisProcess> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'escapement-redis-'));
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder];
  const keepNothing = ['--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', [...settings, ...keepNothing], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const isReady = await saysReady(child.stdout);
  const stop = async (): Promise<void> => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  if (isReady) return { port, stop };
  await stop();
  throw new Error(`redis-server has not started on port ${port}`);
}

async function saysReady(output: NodeJS.ReadableStream): Promise<boolean> {
  // The lines go on to be read: a pipe that nobody empties would stop the server.
  const lines = createInterface({ input: output });
  return new Promise((resolve) => {
    lines.on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve(true);
    });
    lines.on('close', () => {
      resolve(false);
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
