import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { outputOf } from '../controller/keys.ts';
import { renderSettings } from '../controller/settings.ts';

export interface Comparison {
  readonly files: number;
  /** What is missing, other than it should be, or too much. */
  readonly differences: readonly string[];
}

/** Compares every byte of the output with what the source says. Not with the controller's eyes: it lists and reads for itself. */
export async function compareTrees(source: string, output: string): Promise<Comparison> {
  const wanted = new Map<string, string>();
  for (const [key, json] of await readTree(source)) wanted.set(outputOf(key), renderSettings(key, json));
  const found = await readTree(output);
  const differences = [
    ...[...wanted.keys()].filter((path) => !found.has(path)).map((path) => `${path} is missing`),
    ...[...found.keys()].filter((path) => !wanted.has(path)).map((path) => `${path} should be gone`),
    ...[...wanted]
      .filter(([path, text]) => isOther(found.get(path), text))
      .map(([path]) => `${path} is out of date`),
  ];
  return { files: wanted.size, differences };
}

function isOther(found: string | undefined, wanted: string): boolean {
  return found !== undefined && found !== wanted;
}

/** Every file, by its path. */
async function readTree(root: string): Promise<Map<string, string>> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true });
  const paths = entries.filter((entry) => entry.isFile()).map(pathOf);
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
  return new Map(
    paths.map((path, index) => [relative(root, path).replaceAll('\\', '/'), texts[index] ?? '']),
  );
}

function pathOf(entry: Dirent): string {
  return join(entry.parentPath, entry.name);
}
