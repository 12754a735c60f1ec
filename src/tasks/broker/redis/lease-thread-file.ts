import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/** Seen from `dist`, `dist/tasks`, and here. */
const PLACES = [
  './tasks/redis-lease-thread.js',
  './redis-lease-thread.js',
  '../../../../dist/tasks/redis-lease-thread.js',
];

/**
 * The program of the thread: a file of the package, built for itself.
 *
 * @throws Error - it is not there: a program was made one file with its packages, and this one was left behind.
 */
export function leaseThreadFile(): URL {
  // The build for `require` has the first, the one for `import` the second.
  const here = typeof __filename === 'string' ? pathToFileURL(__filename).href : import.meta.url;
  const file = PLACES.map((place) => new URL(place, here)).find((url) => existsSync(url));
  if (file === undefined) throw new Error('the file tasks/redis-lease-thread.js of escapement is not there');
  return file;
}
