/**
 * Checks the files of every disk queue in a folder: every byte of every message, and that the files do not contradict
 * each other. What a crash leaves is in order. For tests, and nobody may have the queues open.
 *
 * @throws Error - naming the first thing that does not hold.
 */
export async function checkSegments(dir: string): Promise<void> {
  // Here, so that whoever checks a timer where there are no files can load this module.
  const [{ hostFileSystem }, { verifyFolder }] = await Promise.all([
    import('./file-system.ts'),
    import('./verify-folder.ts'),
  ]);
  for (const { name, problems } of await verifyFolder(hostFileSystem, dir)) {
    const [first] = problems;
    if (first === undefined) continue;
    const { file, offset, reason, firstSequence, lastSequence } = first;
    const lost = firstSequence === undefined ? '' : `; messages ${firstSequence} to ${lastSequence ?? '?'}`;
    throw new Error(`checkSegments: queue '${name}': ${file} at ${offset}: ${reason}${lost}`);
  }
}
