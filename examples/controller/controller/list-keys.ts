import type { Dirent } from 'node:fs';
import { join } from 'node:path';
import { listIfThere } from './files.ts';
import { directoryKey, inside, keyOfOutput, keyOfSource, ROOT } from './keys.ts';

/** The keys in a directory: of what is in the source, and of the outputs of what was in it. Not what is below those. */
export async function listKeys(source: string, output: string, directory: string): Promise<Set<string>> {
  const sources = await listIfThere(join(source, directory));
  const outputs = await listIfThere(join(output, directory));
  // Or a disk that is not mounted would empty the output.
  if (sources === undefined && directory === ROOT) throw new Error(`there is no directory ${source}`);
  return new Set([...keysOf(directory, sources, keyOfSource), ...keysOf(directory, outputs, keyOfOutput)]);
}

function keysOf(
  directory: string,
  entries: readonly Dirent[] = [],
  keyOfFile: (path: string) => string | undefined,
): string[] {
  return entries
    .map((entry) => {
      const path = inside(directory, entry.name);
      return entry.isDirectory() ? directoryKey(path) : keyOfFile(path);
    })
    .filter((key) => key !== undefined);
}
