import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a process leaves that is killed while it takes the lock of a log, after it has made its own folder. @returns its name. */
export function leaveContender(folder: string, log: string): string {
  const name = '0123456789abcdef';
  const left = `${log}.lock.${name}`;
  mkdirSync(join(folder, left));
  writeFileSync(join(folder, left, name), '');
  return left;
}
