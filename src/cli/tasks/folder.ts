import { hostFileSystem } from '../../log/file-system.ts';
import { LogLock } from '../../log/log-lock.ts';
import { listSegments } from '../../log/recover-segments.ts';
import { LOG_NAME } from '../../tasks/broker/embedded/durable-store.ts';
import { EmbeddedBroker, FOR_READING } from '../../tasks/broker/embedded/embedded-broker.ts';
import { CommandError } from '../command-error.ts';
import { requireFolder } from '../files.ts';

/** What a command does with tasks: inspect them, or change them as well. */
export type FolderAccess = 'read' | 'change';

/**
 * Opens the broker of a folder that no process has open. For reading, nothing in the folder changes: what is shown is what the next
 * process would find.
 *
 * @throws CommandError - there are no tasks, or a process has the folder.
 */
export async function openFolder(
  path: string,
  access: FolderAccess,
  onCorruption: () => void,
): Promise<EmbeddedBroker> {
  await requireTasks(path);
  await requireIdle(path);
  // 'os': what is done is synced when the broker is closed, and not for each task.
  const options = { durability: 'os', [FOR_READING]: access === 'read', onCorruption } as const;
  return EmbeddedBroker.open({ dataPath: path, ...options });
}

/** @throws CommandError - it is not a folder, or has no tasks. */
export async function requireTasks(path: string): Promise<void> {
  await requireFolder(path);
  if ((await listSegments(hostFileSystem, path, LOG_NAME)).length > 0) return;
  throw new CommandError(`${path}: there are no tasks in this folder`);
}

/** @throws CommandError - a process has the folder open. */
export async function requireIdle(path: string): Promise<void> {
  if (!(await LogLock.isHeld(path, LOG_NAME))) return;
  const owner = (await LogLock.ownerOf(path, LOG_NAME)) ?? 'a process';
  throw new CommandError(
    `${path}: ${owner} has this folder open; reach its tasks by its HTTP API (tasksHandler): --url http://…`,
  );
}
