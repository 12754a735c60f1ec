/** Finds the parts: every `bench/NAME.bench.ts`, which exports `part`. Adding a file adds a part. */
import { readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import type { BenchPart } from './part.ts';

const SUFFIX = '.bench.ts';

export function partNamesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length))
    .sort();
}

export async function loadPart(folder: string, name: string): Promise<BenchPart> {
  const module = (await import(pathToFileURL(join(folder, name + SUFFIX)).href)) as { part?: BenchPart };
  if (module.part === undefined) throw new Error(`bench/${name}${SUFFIX} must export 'part', a BenchPart`);
  return module.part;
}
