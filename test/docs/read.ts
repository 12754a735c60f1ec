import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Returns the text of a file, by its path in the repository. */
export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The paths of the files in a folder, and in those below it, whose names end so. */
export function filesIn(folder: string, ending: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith(ending) && !/^(api|node_modules)\b/.test(name))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`);
}
