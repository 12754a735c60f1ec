import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Returns the text of a file, by its path in the repository. */
export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
