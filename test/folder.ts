import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';

/** Makes a folder, which is removed when the test is over, after what the test closes then. */
export function folderOfTest(parent = tmpdir()): string {
  return removedBy(onTestFinished, parent);
}

/** Makes a folder, which is removed after the tests of the file. */
export function folderOfFile(): string {
  return removedBy(afterAll, tmpdir());
}

function removedBy(later: (remove: () => void) => void, parent: string): string {
  const folder = mkdtempSync(join(parent, 'escapement-test-'));
  later(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
