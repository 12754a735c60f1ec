import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { hostFileSystem } from '../../src/log/file-system.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'escapement-files-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  return folder;
}

test.runIf(process.platform === 'linux')('an error of an open file names the file', async () => {
  const folder = temporaryFolder();
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
    const folder = temporaryFolder();
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

test('the calling thread makes a short write; after a slow one the thread pool makes the next hundred', async () => {
  const path = join(temporaryFolder(), 'file');
  const file = await hostFileSystem.create(path);
  const isWrittenAtOnce = async (byte: number): Promise<boolean> => {
    const written = file.write(Buffer.of(byte), 0);
    const [present] = readFileSync(path);
    await written;
    expect(readFileSync(path)).toEqual(Buffer.of(byte));
    return present === byte;
  };
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => {
    now.mockRestore();
  });
  expect(await isWrittenAtOnce(1)).toBe(true);
  now.mockReturnValueOnce(0).mockReturnValueOnce(5.1);
  expect(await isWrittenAtOnce(2)).toBe(true); // the slow one
  let writtenAtOnce = 0;
  for (let i = 0; i < 100; i++) if (await isWrittenAtOnce(100 + i)) writtenAtOnce++;
  expect(writtenAtOnce).toBeLessThan(100); // the pool may be faster than the read of the test
  expect(await isWrittenAtOnce(3)).toBe(true);
  await file.close();
});

test('a long write goes through the thread pool, and is whole', async () => {
  const path = join(temporaryFolder(), 'file');
  const file = await hostFileSystem.create(path);
  const bytes = Buffer.alloc(65_537, 'x');
  await file.write(bytes, 0);
  expect(readFileSync(path).equals(bytes)).toBe(true);
  await file.close();
});
