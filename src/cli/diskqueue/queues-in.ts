import { stat } from 'node:fs/promises';
import { sep } from 'node:path';
import { EscapementError } from '../../core/errors.ts';
import { hostFileSystem } from '../../diskqueue/file-system.ts';
import { CannotRepair } from '../../diskqueue/stored/cannot-repair.ts';
import { listQueues } from '../../diskqueue/stored/list-queues.ts';
import type { StoredQueue } from '../../diskqueue/stored/stored-queue.ts';
import { CommandError, describeError, isSystemError } from '../command-error.ts';
import { EXIT_CODES } from '../exit-code.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printable } from '../terminal/text.ts';

/** A folder, and the queues in it. */
export interface QueuesOfFolder {
  readonly folder: string;
  readonly queues: readonly StoredQueue[];
}

/** Not those that are the root, of a drive too. Elsewhere than on Windows a backslash is a letter. */
const TRAILING_SEPARATORS = sep === '/' ? /(?<=.)\/+$/ : /(?<=[^:])[/\\]+$/;

/** A queue that a command could do nothing with. */
export interface FailedQueue {
  readonly name: string;
  readonly format: string;
  readonly message: string;
}

/** What has come of a command, queue by queue. */
export class Outcome {
  readonly #terminal: Terminal;
  readonly #isJson: boolean;
  /** For `--json`, which has them in its object; else they were printed. */
  readonly failed: FailedQueue[] = [];

  constructor(terminal: Terminal, isJson: boolean) {
    this.#terminal = terminal;
    this.#isJson = isJson;
  }

  /** Does something with a queue. @returns undefined if that cannot be done with its files: the others may fare better. */
  async of<R>({ name, format }: StoredQueue, work: () => Promise<R>): Promise<R | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!isAboutOneQueue(error)) throw error;
      const message = describeError(error);
      this.failed.push({ name, format, message });
      this.end(EXIT_CODES.failed);
      const { err } = this.#terminal;
      if (!this.#isJson) await err.print(`${err.paint('red', 'escapement:')} ${message}`);
      return undefined;
    }
  }

  /** The command ends with the worst of the codes. */
  end(code: number): void {
    this.#terminal.exitCode = Math.max(this.#terminal.exitCode, code);
  }
}

function isAboutOneQueue(error: unknown): boolean {
  return isSystemError(error) || error instanceof EscapementError || error instanceof CannotRepair;
}

/** @throws CommandError - it is no folder. */
export async function queuesIn(dir: string): Promise<QueuesOfFolder> {
  const folder = dir.replace(TRAILING_SEPARATORS, '');
  await requireFolder(folder);
  return { folder, queues: await listQueues(hostFileSystem, folder) };
}

/** The queues of that name; all of them without one. @throws CommandError - there is none. */
export async function someQueuesIn(dir: string, name: string | undefined): Promise<QueuesOfFolder> {
  const { folder, queues } = await queuesIn(dir);
  if (queues.length === 0) throw new CommandError(`${folder}: there are no queues in this folder`);
  if (name === undefined) return { folder, queues };
  const named = queues.filter((queue) => queue.name === name);
  if (named.length === 0) {
    const there = [...new Set(queues.map((queue) => printable(queue.name)))].join(', ');
    throw new CommandError(`${folder}: there is no queue '${name}' in this folder; there is: ${there}`);
  }
  return { folder, queues: named };
}

async function requireFolder(folder: string): Promise<void> {
  try {
    if ((await stat(folder)).isDirectory()) return;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new CommandError(`${folder}: no such folder`);
    if (code !== 'ENOTDIR') throw error;
  }
  throw new CommandError(`${folder}: not a folder`);
}
