/**
 * Checks the files of every disk queue of the default format in a folder: every byte of every message, and that the files
 * do not contradict each other. What a crash leaves is in order. For tests, and nobody may have the queues open.
 *
 * @throws Error - naming the first thing that does not hold.
 */
export async function checkSegments(dir: string): Promise<void> {
  // Here, so that whoever checks a timer where there are no files can load this module.
  const [{ hostFileSystem }, { listQueues }] = await Promise.all([
    import('./file-system.ts'),
    import('./stored/list-queues.ts'),
  ]);
  for (const queue of await listQueues(hostFileSystem, dir)) {
    if (queue.format !== 'checked') continue;
    const { name } = queue;
    const [first] = (await queue.verify(() => undefined)).problems;
    if (first === undefined) continue;
    const { file, offset, reason, firstSequence, lastSequence } = first;
    const lost = firstSequence === undefined ? '' : `; messages ${firstSequence} to ${lastSequence ?? '?'}`;
    throw new Error(`checkSegments: queue '${name}': ${file} at ${offset}: ${reason}${lost}`);
  }
}
