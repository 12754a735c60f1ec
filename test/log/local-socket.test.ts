import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findListener, listenOn, LocalSocket } from '../../src/log/local-socket.ts';
import { rejection, temporaryFolder } from '../diskqueue/support/queues.ts';

const fake = vi.hoisted(() => ({
  locked: new Set<string>(),
  isOutOfFiles: false,
  hasProc: true,
  seen(path: string): string {
    return this.hasProc ? path : path.replace(/^\/proc\//, '/missing/');
  },
}));

/** open(2) as on macOS: with a flag it locks what it opens. It may fail, too. /proc may be missing, as in a chroot(2). */
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>();
  const open: typeof fs.open = async (path, flags = 0, mode) => {
    if (fake.isOutOfFiles) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' });
    const lock = typeof flags === 'number' ? flags & 0x30 : 0;
    if (lock !== 0 && fake.locked.has(String(path)))
      throw Object.assign(new Error('EAGAIN'), { code: 'EAGAIN' });
    if (lock === 0x20) fake.locked.add(String(path));
    return fs.open(path, typeof flags === 'number' ? flags & ~0x30 : flags, mode);
  };
  return { ...fs, access: (path: string) => fs.access(fake.seen(path)), open };
});

vi.mock('node:net', async (original) => {
  const net = await original<typeof import('node:net')>();
  return { ...net, createConnection: (path: string) => net.createConnection(fake.seen(path)) };
});

function onMacOs(): void {
  const { platform } = process;
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }));
}

test('on macOS a socket that refuses is alive while its folder is locked: its backlog may be full', async () => {
  onMacOs();
  const folder = temporaryFolder();
  const socket = await LocalSocket.listen(folder, 'a');
  await socket.close();
  writeFileSync(join(folder, 'a'), '');
  expect(await findListener(folder, 'a')).toMatchObject({ code: 'EAGAIN' });
  fake.locked.clear(); // its process has ended
  expect(await findListener(folder, 'a')).toBeUndefined();
});

test('a process that may open no more files does not take a socket for alive', async () => {
  fake.isOutOfFiles = true;
  onTestFinished(() => {
    fake.isOutOfFiles = false;
  });
  expect(await rejection(findListener('anywhere', 'a'))).toMatchObject({ code: 'EMFILE' });
});

test('a socket listens where its path is too long for the system', async () => {
  const folder = join(temporaryFolder(), 'x'.repeat(200));
  mkdirSync(folder);
  const socket = await LocalSocket.listen(folder, 'a');
  expect((await findListener(folder, 'a'))?.message).toContain('listens on');
  await socket.close();
  expect(await findListener(folder, 'a')).toBeUndefined();
});

test('a process that has no /proc finds a socket, too', async () => {
  const folder = temporaryFolder();
  const socket = await LocalSocket.listen(folder, 'a');
  fake.hasProc = false;
  onTestFinished(() => {
    fake.hasProc = true;
  });
  expect((await findListener(folder, 'a'))?.message).toContain('listens on');
  await socket.close();
  expect(await findListener(folder, 'a')).toBeUndefined();
});

test('a socket is not taken for dead if its path is too long, and there is no folder for a shorter one', async () => {
  const folder = join(temporaryFolder(), 'x'.repeat(200));
  mkdirSync(folder);
  const socket = await LocalSocket.listen(folder, 'a');
  onMacOs();
  vi.stubEnv('TMPDIR', '/missing');
  onTestFinished(() => void vi.unstubAllEnvs());
  const notFound = { code: 'ENOENT', syscall: 'symlink' };
  expect(await rejection(findListener(folder, 'a'))).toMatchObject(notFound);
  await socket.close();
});

test('a name that is too long for any socket is refused, and not cut off', async () => {
  const folder = temporaryFolder();
  const refused = async (): Promise<void> => {
    const error = await rejection(LocalSocket.listen(folder, 'x'.repeat(120)));
    expect(error).toHaveProperty('code', 'ENAMETOOLONG');
  };
  await refused();
  onMacOs();
  await refused();
});

test('errors of accepting connections do not end the process', async () => {
  const server = await listenOn(join(temporaryFolder(), 'a'));
  for (let i = 0; i < 3; i++) server.emit('error', new Error('accept EMFILE'));
  server.close();
});

test('a file that no process listens on is dead, whatever it is', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'file'), '');
  mkdirSync(join(folder, 'folder'));
  const names = ['file', 'folder', 'missing', 'x'.repeat(120)];
  for (const name of names) expect(await findListener(folder, name)).toBeUndefined();
  expect(await findListener(join(folder, 'missing'), 'a')).toBeUndefined();
});
