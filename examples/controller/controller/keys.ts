/**
 * What the queue holds: paths below the source directory, with `/` on every platform. A file and its output have one
 * key, and a directory is a key as well, which ends in `/`.
 *
 *      key             source          output
 *      team/app.json   team/app.json   team/app.conf
 *      team/           team            team
 *      /               .               .
 */
export const ROOT = '/';

const SOURCE = '.json';
const OUTPUT = '.conf';

export function isDirectory(key: string): boolean {
  return key.endsWith('/');
}

/** Of the directory of that path. */
export function directoryKey(path: string): string {
  return isDirectory(path) ? path : `${path}/`;
}

/** Of a file that settings come from; undefined if it is another file. */
export function keyOfSource(path: string): string | undefined {
  return path.endsWith(SOURCE) ? path : undefined;
}

/** Of the file that an output is made from; undefined if it is no output. */
export function keyOfOutput(path: string): string | undefined {
  return path.endsWith(OUTPUT) ? path.slice(0, -OUTPUT.length) + SOURCE : undefined;
}

export function outputOf(key: string): string {
  return key.slice(0, -SOURCE.length) + OUTPUT;
}

/** The path of something in a directory. */
export function inside(directory: string, name: string): string {
  return directory === ROOT ? name : directory + name;
}
