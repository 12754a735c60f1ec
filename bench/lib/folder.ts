/** The folders of contestants that write to a disk. */
import { statfsSync, type StatsFs } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from './program.ts';

const VARIABLE = 'ESCAPEMENT_BENCH_FOLDER';
const BASE = process.env[VARIABLE] ?? tmpdir();

/** Types that `statfs` returns on Linux. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x01_02_19_94: 'tmpfs',
  0x2f_c1_2f_c1: 'ZFS',
  0x58_46_53_42: 'XFS',
  0x65_73_55_46: 'FUSE',
  0x69_69: 'NFS',
  0x79_4c_76_30: 'overlayfs',
  0x91_23_68_3e: 'btrfs',
  0xef_53: 'ext2, ext3 or ext4',
};

/** Makes a folder for one contestant and removes it afterwards. */
export async function withFolder<R>(action: (folder: string) => Promise<R>): Promise<R> {
  const folder = await mkdtemp(join(BASE, 'escapement-bench-'));
  try {
    return await action(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Calls `action` with something that is open, and closes it. */
export async function closing<T extends { close(): unknown }, R>(
  opened: T | Promise<T>,
  action: (opened: T) => Promise<R>,
): Promise<R> {
  const subject = await opened;
  try {
    return await action(subject);
  } finally {
    await subject.close();
  }
}

export function freeBytes(): number {
  const { bavail, bsize } = statistics();
  return bavail * bsize;
}

/** Describes the file system for the remarks, without its path, which may be private. */
export function describeFolder(): string {
  const { type } = statistics();
  const kind = FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`;
  const where = process.env[VARIABLE] === undefined ? 'the folder for temporary files' : `the ${VARIABLE}`;
  const warning =
    kind === 'tmpfs'
      ? ` WARNING: tmpfs has no disk, so a sync costs nothing: set ${VARIABLE} to a folder on a disk.`
      : '';
  return `The files are in ${where}: ${kind}.${warning} Recent writes are read from the memory of the host, not from the disk.`;
}

function statistics(): StatsFs {
  try {
    return statfsSync(BASE);
  } catch (error) {
    throw new UsageError(`${VARIABLE}: cannot use '${BASE}': ${(error as Error).message}`);
  }
}
