import { createHash } from 'node:crypto';
import { mkdir, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { codeOf } from './file-system.ts';
import {
  ask,
  askListener,
  closeServer,
  connectTo,
  findListener,
  listenOn,
  LocalSocket,
  randomName,
} from './local-socket.ts';

/*
 * One owner per log, until it closes the log or its process ends. The lock is a folder with a socket that listens:
 *
 *      spool.lock.8f3a…/8f3a…      1. a contender makes a folder of its own, and listens in it
 *            │ rename(2)
 *            ▼                     2. the kernel replaces a folder only if it is empty: one rename succeeds
 *      spool.lock/8f3a…            3. the socket is found there for as long as the process lives
 *
 * The kernel closes a socket with its process, so a socket that refuses connections has a dead owner: a contender removes
 * it and renames again. No pid and no time is compared. Names are random and published only while the socket listens, so
 * only a dead socket can be removed, however late a contender does it. The lock is in the folder: containers that share the
 * folder share the lock, a copy of the folder has none, and only a process that may write there can take it.
 *
 * A contender that is killed between the first step and the second leaves its own folder behind, which does no harm.
 *
 * On Windows the lock is a named pipe, of which the kernel allows one first instance.
 */

/** Attempts before a contender gives up. Each failure means that another contender was faster. */
const MOST_ATTEMPTS = 100;

/** A rename fails with these if another process was faster: the target is in use. */
const OVERTAKEN = new Set(['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM', 'EACCES']);

/** A bind fails with these where a file system has no sockets. */
const HAS_NO_SOCKETS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'ENOSYS']);

/** The socket or pipe that is held while the log is owned. */
interface Claim {
  close(): Promise<void>;
}

/** The lock of a log, or of a queue in another format: its holder owns it. */
export class LogLock {
  #claim: Claim | undefined;

  private constructor(claim: Claim) {
    this.#claim = claim;
  }

  /**
   * @param log - its name.
   * @throws LogTaken - another process, another thread or this one has the lock. NoSockets - the folder cannot hold a lock.
   */
  static async acquire(folder: string, log: string): Promise<LogLock> {
    try {
      return new LogLock(isWindows() ? await claimPipe(folder, log) : await claimFolder(folder, log));
    } catch (error) {
      const { syscall } = error as NodeJS.ErrnoException;
      const hasNoSockets = syscall === 'listen' && HAS_NO_SOCKETS.has(codeOf(error));
      throw hasNoSockets ? new NoSockets(folder, error) : error;
    }
  }

  /** Whether the log has an owner now. Changes nothing. */
  static async isHeld(folder: string, log: string): Promise<boolean> {
    if (isWindows()) return isPipeHeld(await pipeOf(folder, log));
    return (await examine(lockOf(folder, log))).owner !== undefined;
  }

  /** Returns which process the owner is: `process 7 on host`. Undefined if it does not answer. Changes nothing. */
  static async ownerOf(folder: string, log: string): Promise<string | undefined> {
    if (isWindows()) return ask(await pipeOf(folder, log));
    const lock = lockOf(folder, log);
    const names = await readdir(lock).catch(() => []);
    const answers = await Promise.all(names.map((name) => askListener(lock, name)));
    return answers.find((answer) => answer !== undefined);
  }

  /** Idempotent. */
  async release(): Promise<void> {
    const claim = this.#claim;
    this.#claim = undefined;
    await claim?.close();
  }
}

/** The log has another owner; the message is where, the cause the evidence. */
export class LogTaken extends Error {
  constructor(evidence: unknown) {
    super(codeOf(evidence) === 'EACCES' ? 'by another user' : 'here or elsewhere', { cause: evidence });
  }
}

/** The folder cannot hold a lock; the cause is the error of the host. */
export class NoSockets extends Error {
  constructor(folder: string, cause: unknown) {
    super(`the file system of ${folder} cannot hold a Unix socket, which a lock needs (${codeOf(cause)})`, {
      cause,
    });
  }
}

function isWindows(): boolean {
  return process.platform === 'win32';
}

function lockOf(folder: string, log: string): string {
  return join(resolve(folder), `${log}.lock`);
}

async function claimFolder(folder: string, log: string): Promise<Claim> {
  const lock = lockOf(folder, log);
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    await removeDeadOwner(lock);
    const claim = await FolderClaim.make(lock);
    if (await claim.publish()) return claim;
    await claim.close();
  }
  throw new LogTaken(new Error(`other processes were faster ${MOST_ATTEMPTS} times`));
}

/** A folder with a socket that listens: first beside the lock, then as the lock. */
class FolderClaim implements Claim {
  readonly #lock: string;
  readonly #name: string;
  readonly #socket: LocalSocket;
  #path: string;

  private constructor(lock: string, name: string, socket: LocalSocket) {
    this.#lock = lock;
    this.#name = name;
    this.#socket = socket;
    this.#path = `${lock}.${name}`;
  }

  static async make(lock: string): Promise<FolderClaim> {
    const name = randomName();
    const path = `${lock}.${name}`;
    await mkdir(path, 0o700);
    try {
      return new FolderClaim(lock, name, await LocalSocket.listen(path, name));
    } catch (error) {
      await rmdir(path).catch(() => undefined);
      throw error;
    }
  }

  /** @returns false if another process was faster. */
  async publish(): Promise<boolean> {
    try {
      await rename(this.#path, this.#lock);
    } catch (error) {
      if (OVERTAKEN.has(codeOf(error))) return false;
      await this.close();
      throw error;
    }
    this.#path = this.#lock;
    return true;
  }

  /** Once the socket has no name, another process may take the log, and put its own folder in the place of this one. */
  async close(): Promise<void> {
    await unlink(join(this.#path, this.#name)).catch(() => undefined);
    await this.#socket.close();
    await rmdir(this.#path).catch(() => undefined); // it may be the folder of the next owner
  }
}

/**
 * Removes the folder of a dead owner. That frees its block, which the next owner needs on a full disk.
 *
 * @throws LogTaken - the owner is alive.
 */
async function removeDeadOwner(lock: string): Promise<void> {
  const { owner, files } = await examine(lock);
  if (owner !== undefined) throw new LogTaken(owner);
  for (const file of files) await unlink(file).catch(unlessReplaced);
  await rmdir(lock).catch(() => undefined); // if it is empty, and there
}

/** The path of a listed file may be a folder of the next owner now. */
function unlessReplaced(error: unknown): void {
  if (!['ENOENT', 'EISDIR', 'EPERM'].includes(codeOf(error))) throw error;
}

interface ExaminedLock {
  /** Evidence of an owner that is alive; undefined if there is none. */
  readonly owner: Error | undefined;
  /** Paths of the sockets: at most one, unless another program has put files there. */
  readonly files: readonly string[];
}

async function examine(lock: string): Promise<ExaminedLock> {
  const files: string[] = [];
  try {
    for (const name of await readdir(lock)) files.push(join(lock, name));
  } catch (error) {
    if (codeOf(error) === 'EACCES') return { owner: error as Error, files };
    if (codeOf(error) === 'ENOTDIR') files.push(lock);
    else if (codeOf(error) !== 'ENOENT') throw error;
  }
  for (const file of files) {
    const owner = await findListener(dirname(file), basename(file));
    if (owner !== undefined) return { owner, files };
  }
  return { owner: undefined, files };
}

/** Uses the identity of the folder on its device: another spelling of its path is the same log. */
async function pipeOf(folder: string, log: string): Promise<string> {
  const { dev, ino } = await stat(folder, { bigint: true });
  const identity = createHash('sha256').update(`${dev}:${ino}:${log}`).digest('hex').slice(0, 40);
  return `\\\\?\\pipe\\escapement-${identity}`;
}

async function claimPipe(folder: string, log: string): Promise<Claim> {
  const pipe = await pipeOf(folder, log);
  try {
    const server = await listenOn(pipe);
    return { close: () => closeServer(server) };
  } catch (error) {
    throw codeOf(error) === 'EADDRINUSE' ? new LogTaken(error) : error;
  }
}

async function isPipeHeld(pipe: string): Promise<boolean> {
  try {
    await connectTo(pipe);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ENOENT';
  }
}
