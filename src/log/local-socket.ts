import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, open, symlink, unlink, type FileHandle } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, isOutOfFiles } from './file-system.ts';

/** Longest path of a socket, in bytes: 103 on macOS and the BSDs, 107 on Linux. Node cuts a longer one off silently. */
const LONGEST_SOCKET_PATH = 103;

/** open(2) of these systems locks like flock(2); the flags have the same values on all of them. */
const LOCKING_OPEN = new Set<string>(['darwin', 'freebsd', 'openbsd', 'netbsd']);
const LOCK_FLAGS = { shared: 0x10, exclusive: 0x20 } as const;

/** Errors of a file that no process listens on, or that does not exist. */
const NOT_LISTENING = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTDIR', 'ENOTSOCK', 'ENAMETOOLONG']);

/** System calls that make and remove a short path. */
const OF_SHORT_PATH = new Set(['symlink', 'unlink']);

/** A Unix socket that listens in a folder. The kernel closes it when the process ends, for whatever reason. */
export class LocalSocket {
  /** Stays open: on Linux, Node removes the socket file by a path through this handle. */
  readonly #folder: FileHandle;
  readonly #server: Server;

  private constructor(folder: FileHandle, server: Server) {
    this.#folder = folder;
    this.#server = server;
  }

  /** @param name - must never be used again: on closing, Node removes whatever has the path of the socket by then. */
  static async listen(folder: string, name: string): Promise<LocalSocket> {
    const handle = await openFolder(folder, 'exclusive');
    try {
      return new LocalSocket(handle, await withShortPath(handle, folder, name, listenOn));
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await closeServer(this.#server);
    await this.#folder.close();
  }
}

/**
 * Finds out whether a process listens on a socket in a folder. Only a refused connection proves that there is none: with
 * `EAGAIN` the backlog of a paused process is full, with `EACCES` it may be a process of another user.
 *
 * @returns the evidence of a process; undefined if there is none.
 * @throws the error of the host if it could not be found out: the process may open no more files, for example.
 */
export async function findListener(folder: string, name: string): Promise<Error | undefined> {
  try {
    await onSocket(folder, name, connectTo);
    return new Error(`a process listens on ${join(folder, name)}`);
  } catch (error) {
    const failure = error as NodeJS.ErrnoException;
    if (isOutOfFiles(error) || OF_SHORT_PATH.has(failure.syscall ?? '')) throw error; // it shows nothing about the socket
    return NOT_LISTENING.has(failure.code ?? '') ? undefined : failure;
  }
}

/** How long a listener has to name its process, in milliseconds: its event loop may be blocked. */
const ANSWER_MS = 500;

/** Returns the name of the process that listens on a socket in a folder; undefined if it does not answer. */
export function askListener(folder: string, name: string): Promise<string | undefined> {
  return onSocket(folder, name, ask).catch(() => undefined);
}

/** Runs an action with the path of a socket in a folder. */
async function onSocket<R>(folder: string, name: string, action: (path: string) => Promise<R>): Promise<R> {
  const handle = await openFolder(folder, 'shared');
  try {
    return await withShortPath(handle, folder, name, action);
  } finally {
    await handle.close();
  }
}

/** As {@link askListener}, by the path of a socket or pipe. */
export function ask(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = createConnection(path).setTimeout(ANSWER_MS);
    socket.on('timeout', () => socket.destroy()).on('error', () => undefined);
    socket.setEncoding('utf8').on('data', (chunk) => (answer += String(chunk)));
    socket.on('close', () => {
      resolve(/^process \d+ on [\w.-]+$/.test(answer) ? answer : undefined);
    });
  });
}

/** Writes the name of this process to a connection, for the error that names the owner of the lock. */
function answer(socket: Socket): void {
  socket.on('error', () => undefined); // most connections only find out whether there is a process
  socket.end(`process ${process.pid} on ${hostname()}`, () => socket.destroy());
}

/** `exclusive`: the workers of a cluster would share it. */
export function listenOn(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(answer);
    server.on('error', reject); // later ones are about connections
    server.listen({ path, exclusive: true }, () => {
      server.unref(); // the kernel releases the lock when the process ends
      resolve(server);
    });
  });
}

export async function closeServer(server: Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
}

export function connectTo(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

/**
 * Opens a folder, with a lock where open(2) has locks: macOS and the BSDs refuse a connection both when no process listens
 * and when the backlog is full, so there the lock of the folder distinguishes a dead process from a paused one. A file
 * system without such locks cannot distinguish them.
 *
 * @throws `EAGAIN` - another process holds the lock.
 */
async function openFolder(folder: string, lock: keyof typeof LOCK_FLAGS): Promise<FileHandle> {
  if (LOCKING_OPEN.has(process.platform)) {
    try {
      return await open(folder, constants.O_RDONLY | constants.O_NONBLOCK | LOCK_FLAGS[lock]);
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') throw error;
    }
  }
  return open(folder, constants.O_RDONLY);
}

/** Runs an action with a path of the socket that is short enough, however long the path of the folder is. */
async function withShortPath<R>(
  handle: FileHandle,
  folder: string,
  name: string,
  action: (path: string) => Promise<R>,
): Promise<R> {
  const isLinux = process.platform === 'linux' || process.platform === 'android';
  const alias = `/proc/self/fd/${handle.fd}`;
  if (isLinux && (await isAccessible(alias))) return action(requireShort(`${alias}/${name}`));
  const path = join(folder, name);
  if (isShort(path)) return action(path);
  const link = join(tmpdir(), `escapement-${randomName()}`);
  const shortPath = requireShort(join(link, name));
  await symlink(folder, link);
  try {
    return await action(shortPath);
  } finally {
    await unlink(link);
  }
}

/** A chroot(2) may have no /proc, and Node's option `--permission` may forbid to read it. */
function isAccessible(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function isShort(path: string): boolean {
  return Buffer.byteLength(path) <= LONGEST_SOCKET_PATH;
}

function requireShort(path: string): string {
  if (isShort(path)) return path;
  const message = `ENAMETOOLONG: the path of a socket must have at most ${LONGEST_SOCKET_PATH} bytes, '${path}'`;
  throw Object.assign(new Error(message), { code: 'ENAMETOOLONG', syscall: 'bind', path });
}

/** Returns a file name that no other file ever has. */
export function randomName(): string {
  return randomBytes(8).toString('hex');
}
