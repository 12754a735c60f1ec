/** Where the files lie: a disk is part of what is measured, so a reader must know which. */
import { statfsSync, type StatsFs } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../lib/usage-error.ts';

const VARIABLE = 'ESCAPEMENT_BENCH_FOLDER';
const BASE = process.env[VARIABLE] ?? tmpdir();

/** What `statfs` calls them, on Linux. */
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

/** A folder for one contestant, which is gone afterwards. */
export async function withFolder<R>(action: (folder: string) => Promise<R>): Promise<R> {
  const folder = await mkdtemp(join(BASE, 'escapement-bench-'));
  try {
    return await action(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function freeBytes(): number {
  const { bavail, bsize } = statistics();
  return bavail * bsize;
}

/** For the remarks: the kind of file system, but no path, which is nobody's business. */
export function describeFolder(): string {
  const { type } = statistics();
  const kind = FILE_SYSTEMS[type] ?? `a file system of type 0x${type.toString(16)}`;
  const where = process.env[VARIABLE] === undefined ? 'the folder for temporary files' : `the ${VARIABLE}`;
  const warning =
    kind === 'tmpfs'
      ? ` WARNING: tmpfs has no disk, a sync costs nothing there: set ${VARIABLE} to a folder on a disk.`
      : '';
  return `The files lie in ${where}: ${kind}.${warning} What was written lately is read from the host’s memory, not from the disk.`;
}

function statistics(): StatsFs {
  try {
    return statfsSync(BASE);
  } catch (error) {
    throw new UsageError(`${VARIABLE}: cannot use '${BASE}': ${(error as Error).message}`);
  }
}
