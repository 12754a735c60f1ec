import { createHash } from 'node:crypto';
import { open, stat, unlink, type FileHandle } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { EscapementError } from '../core/errors.ts';

/*
 * One owner per queue. The lock is a socket that listens: the kernel closes it with the process, however that ends, so
 * there is no stale lock, and no pid that somebody else has now.
 *
 * - Linux: a socket of the abstract namespace, which is bound by one owner at a time; and, because that namespace is not
 *   shared between containers, a socket file beside the queue, which whoever holds the first one may replace if nobody
 *   answers.
 * - Windows: a named pipe. Elsewhere: a socket file in the folder for temporary files.
 *
 * Its name is made of the folder's identity on its device, not of its path: another spelling is the same queue.
 */

/** Longest path of a socket, in bytes, on every system. */
const LONGEST_SOCKET_PATH = 100;

/** Whoever holds it owns the queue. */
export class QueueLock {
  readonly #servers: Server[] = [];
  /** Stays open: Node removes the socket file beside the queue by a name that leads through it. */
  #folder: FileHandle | undefined;

  /**
   * @throws EscapementError `ERR_QUEUE_LOCKED` - somebody has it: another process, another thread, or this one.
   */
  static async acquire(folder: string, queue: string): Promise<QueueLock> {
    const lock = new QueueLock();
    try {
      await lock.#acquire(folder, queue);
      return lock;
    } catch (error) {
      await lock.release();
      if (isTaken(error)) throw lockedError(folder, queue, error);
      throw error;
    }
  }

  /** Whether somebody has it now. Takes nothing and changes nothing. */
  static async isHeld(folder: string, queue: string): Promise<boolean> {
    const identity = await identityOf(folder, queue);
    if (process.platform !== 'linux') return answers(addressOf(identity));
    return (await answers(addressOf(identity))) || (await answersBeside(folder, queue));
  }

  /** Idempotent. */
  async release(): Promise<void> {
    const [servers, folder] = [this.#servers.splice(0), this.#folder];
    this.#folder = undefined;
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    await folder?.close();
  }

  async #acquire(folder: string, queue: string): Promise<void> {
    const address = addressOf(await identityOf(folder, queue));
    if (process.platform === 'linux') {
      this.#servers.push(await listen(address));
      await this.#listenBeside(folder, queue);
    } else if (process.platform === 'win32') this.#servers.push(await listen(address));
    else this.#servers.push(await replaceIfDead(address));
  }

  /** For those who cannot see the first one. A file system without sockets does without. */
  async #listenBeside(folder: string, queue: string): Promise<void> {
    this.#folder = await open(folder, 'r');
    const path = pathBeside(this.#folder, queue);
    if (path === undefined) return;
    try {
      this.#servers.push(await replaceIfDead(path));
    } catch (error) {
      if (isTaken(error)) throw error;
    }
  }
}

/** With the folder by the number of its open file: its path may be too long for a socket. So may be the name: undefined. */
function pathBeside(folder: FileHandle, queue: string): string | undefined {
  const path = `/proc/self/fd/${folder.fd}/${queue}.lock`;
  return Buffer.byteLength(path) <= LONGEST_SOCKET_PATH ? path : undefined;
}

async function identityOf(folder: string, queue: string): Promise<string> {
  const { dev, ino } = await stat(folder, { bigint: true });
  return createHash('sha256').update(`${dev}:${ino}:${queue}`).digest('hex').slice(0, 40);
}

function addressOf(identity: string): string {
  if (process.platform === 'linux') return `\0escapement-${identity}`;
  if (process.platform === 'win32') return `\\\\?\\pipe\\escapement-${identity}`;
  return `${tmpdir()}/escapement-${identity}.lock`;
}

/** The socket file that somebody in another container may have. */
async function answersBeside(folder: string, queue: string): Promise<boolean> {
  const handle = await open(folder, 'r');
  try {
    const path = pathBeside(handle, queue);
    return path !== undefined && (await answers(path));
  } finally {
    await handle.close();
  }
}

/** @param path - of a socket file, which stays when its owner dies. */
async function replaceIfDead(path: string): Promise<Server> {
  if (await answers(path)) throw Object.assign(new Error(`${path} answers`), { code: 'EADDRINUSE' });
  await unlink(path).catch(() => undefined);
  return listen(path);
}

/** Node removes a socket file when its server closes. `exclusive`: the workers of a cluster would share it. */
function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ path, exclusive: true }, () => {
      server.unref(); // a queue that nobody closed must not keep the process alive: the kernel gives the lock back
      resolve(server);
    });
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    const settle = (isAlive: boolean) => (): void => {
      socket.destroy();
      resolve(isAlive);
    };
    socket.once('connect', settle(true));
    socket.once('error', settle(false));
  });
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
}

function lockedError(folder: string, queue: string, cause: unknown): EscapementError {
  return new EscapementError(
    'ERR_QUEUE_LOCKED',
    `queue '${queue}' in ${folder} is open already, here or elsewhere`,
    {
      op: 'DiskQueue.open',
      cause,
    },
  );
}
