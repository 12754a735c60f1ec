import { execFileSync } from 'node:child_process';
import fs, { readFileSync, unlinkSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { hostFileSystem } from '../../src/log/file-system.ts';
import { folderOfTest } from '../folder.ts';

test.runIf(process.platform === 'linux')('an error of an open file names the file', async () => {
  const folder = folderOfTest();
  const file = await hostFileSystem.open(folder, 'read'); // a folder, of which nothing can be read
  const message = expect.stringMatching(/^EISDIR: .*, read '.*escapement-test-.*'$/) as string;
  const read = file.read(Buffer.alloc(1), 0);
  await expect(read).rejects.toMatchObject({ code: 'EISDIR', path: folder, message });
  await file.close();
});

test.skipIf(process.platform === 'win32')(
  'opening a named pipe or a device is rejected without waiting',
  async () => {
    const folder = folderOfTest();
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
  const path = join(folderOfTest(), 'file');
  const file = await hostFileSystem.create(path);
  const inThisThread = vi.spyOn(fs, 'writeSync');
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
  const write = async (byte: number): Promise<void> => {
    await file.write(Buffer.of(byte), 0);
    expect(readFileSync(path)).toEqual(Buffer.of(byte));
  };
  await write(1);
  expect(inThisThread).toHaveBeenCalledTimes(1);
  now.mockReturnValueOnce(0).mockReturnValueOnce(5.1);
  await write(2); // the slow one
  for (let i = 0; i < 100; i++) await write(100 + i);
  expect(inThisThread).toHaveBeenCalledTimes(2);
  await write(3);
  expect(inThisThread).toHaveBeenCalledTimes(3);
  await file.close();
});

test('a long write goes through the thread pool, and is whole', async () => {
  const path = join(folderOfTest(), 'file');
  const file = await hostFileSystem.create(path);
  const bytes = Buffer.alloc(65_537, 'x');
  await file.write(bytes, 0);
  expect(readFileSync(path).equals(bytes)).toBe(true);
  await file.close();
});

test('a sync rejects, at the latest a second later, if the file was removed while it is open', async () => {
  const path = join(folderOfTest(), 'file');
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  onTestFinished(() => void vi.restoreAllMocks());
  const file = await hostFileSystem.create(path);
  await file.sync();
  unlinkSync(path);
  await file.sync();
  now.mockReturnValue(1_000);
  await expect(file.sync()).rejects.toMatchObject({ code: 'ENOENT', path });
  await file.close();
});
