import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { hostFileSystem } from '../../src/log/file-system.ts';

test.runIf(process.platform === 'linux')('an error of an open file names the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'escapement-files-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = await hostFileSystem.open(folder, 'read'); // a folder, of which nothing can be read
  const message = expect.stringMatching(/^EISDIR: .*, read '.*escapement-files-.*'$/) as string;
  await expect(file.read(Buffer.alloc(1), 0)).rejects.toMatchObject({
    code: 'EISDIR',
    path: folder,
    message,
  });
  await file.close();
});

test.skipIf(process.platform === 'win32')(
  'opening a named pipe or a device is rejected without waiting',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'escapement-files-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const [pipe, device] = [join(folder, 'pipe'), join(folder, 'device')];
    execFileSync('mkfifo', [pipe]);
    symlinkSync('/dev/zero', device);
    for (const path of [pipe, device]) {
      for (const mode of ['read', 'write'] as const) {
        await expect(hostFileSystem.open(path, mode)).rejects.toMatchObject({ code: 'EFTYPE', path });
      }
    }
  },
);
