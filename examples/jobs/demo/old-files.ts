import { randomUUID } from 'node:crypto';
import { access, utimes, writeFile } from 'node:fs/promises';
import { ImageStore } from '../service/image-store.ts';

const COUNT = 3;
const LONG_AGO = new Date('2001-01-01');

/** Lays out files that have been there for a long time. @returns their paths. */
export async function layOutOldFiles(store: ImageStore): Promise<string[]> {
  await store.prepare();
  const paths = Array.from({ length: COUNT }, () => store.originalPath(randomUUID()));
  for (const path of paths) {
    await writeFile(path, 'forgotten');
    await utimes(path, LONG_AGO, LONG_AGO);
  }
  return paths;
}

export async function countFiles(paths: readonly string[]): Promise<number> {
  const there = await Promise.allSettled(paths.map((path) => access(path)));
  return there.filter(({ status }) => status === 'fulfilled').length;
}
