/**
 * Checks the files of every disk queue in a folder, of either format: every byte of every message, or in `nsq`, which has
 * no checksums, every length; and that the files do not contradict each other. What a crash leaves is in order. For tests,
 * and nobody may have the queues open.
 *
 * @throws Error - naming the first thing that does not hold.
 */
export async function checkSegments(dir: string): Promise<void> {
  // Here, so that whoever checks a timer where there are no files can load this module.
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
