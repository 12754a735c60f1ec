import { requirePath } from '../core/validate.ts';

/**
 * Checks the files of every disk queue in a folder, of either format: every byte of every message, or every length in the
 * `nsq` format, which has no checksums; and that the files do not contradict each other. What a crash leaves is valid. For
 * tests. The queues must be closed.
 *
 * @throws Error - names the first problem. TypeError `ERR_INVALID_ARG_TYPE` - not a path.
 */
export async function checkSegments(dir: string): Promise<void> {
  requirePath('dir', dir);
  // Imported here, so that the checks of other parts can be loaded where there is no file system.
  const [{ hostFileSystem }, { listQueues }] = await Promise.all([
    import('../log/file-system.ts'),
    import('./stored/list-queues.ts'),
  ]);
  for (const queue of await listQueues(hostFileSystem, dir)) {
    const { problems } = await queue.verify(() => undefined);
    const [first] = problems;
    if (first === undefined) continue;
    const { file, offset, reason, firstSequence, lastSequence } = first;
    const lost = firstSequence === undefined ? '' : `; messages ${firstSequence} to ${lastSequence ?? '?'}`;
    throw new Error(`checkSegments: queue '${queue.name}': ${file} at ${offset}: ${reason}${lost}`);
  }
}
