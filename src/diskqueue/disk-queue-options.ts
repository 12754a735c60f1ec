import { resolve } from 'node:path';
import { systemClock, type Clock } from '../core/clock.ts';
import { wrongType, wrongValue } from '../core/errors.ts';
import { integer, oneOf, orInfinity, readOptions, type OptionTable, type Resolved } from '../core/options.ts';
import { requireClock } from '../core/require-clock.ts';
import { requireFunction, requireIntegerAtLeast, requireString } from '../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import { hostFileSystem, type FileSystem } from '../log/file-system.ts';
import type { CorruptionEvent } from './message-log.ts';

/** When a message that was put is safe. */
export type Durability = 'always' | 'interval' | 'os';

/** Options of `DiskQueue.open`. */
export interface DiskQueueOptions {
  /**
   * Names the queue's files: well-formed Unicode without slashes, at most 150 bytes. Queues of different names share a
   * folder.
   */
  readonly name: string;
  /** The folder; made if it is not there. */
  readonly dataPath: string;
  /**
   * Size of a file, in bytes: an integer of at least 256; with `format: 'nsq'` of at least 1, as go-diskqueue has it. A
   * larger message gets a file of its own.
   *
   * @default 100 MiB
   */
  readonly maxBytesPerFile?: number;
  /** Shortest message, in bytes. @default 0 */
  readonly minMessageSize?: number;
  /** Longest message, in bytes, at most 2^31 - 1. It limits `put` only, not what is stored. @default 1 MiB */
  readonly maxMessageSize?: number;
  /**
   * When `put` resolves, and what that means.
   *
   * - `'always'`: when the message is on the disk. Puts that come during a sync share the next one.
   * - `'interval'`: when the host has it. It is on the disk after `syncEvery` operations, `syncTimeoutMs`, or `flush`.
   * - `'os'`: when the host has it: it survives the process, not the machine.
   *
   * @default 'always'
   */
  readonly durability?: Durability;
  /** Puts and acknowledgements after which all is synced: an integer of at least 1. @default 2_500 */
  readonly syncEvery?: number;
  /**
   * Milliseconds after which all is synced, with `'interval'`; with any durability, after which acknowledgements are.
   *
   * @default 2_000
   */
  readonly syncTimeoutMs?: number;
  /** Bytes of messages that may be unacknowledged; `whenFull` says what happens then. @default Infinity */
  readonly maxBytesTotal?: number;
  /** `'reject'`: `put` rejects with `ERR_QUEUE_FULL`. `'wait'`: it waits, in order. @default 'reject' */
  readonly whenFull?: 'reject' | 'wait';
  /** `'checked'`: with checksums. `'nsq'`: the files of go-diskqueue, byte for byte. @default 'checked' */
  readonly format?: 'checked' | 'nsq';
  /**
   * Called for damage that was found in the files and skipped. It must not throw.
   *
   * @default a warning of the process
   */
  readonly onCorruption?: (event: CorruptionEvent) => void;
  /** For the interval, and for the durations that are measured. @default systemClock */
  readonly clock?: Clock;
  /** Gets the measurements that docs/diskqueue.md lists. @default none */
  readonly metrics?: MetricsProvider;
}

/** @internal How tests put a file system of their own under a queue. */
export const FILE_SYSTEM: unique symbol = Symbol.for('escapement.diskqueue.file-system');

const MIB = 1024 * 1024;
/** A file must hold a header, a footer and something between them; NSQ's has neither. In bytes. */
const SMALLEST_FILE = { checked: 256, nsq: 1 };
/** What a signed 32-bit length can say. */
const LARGEST_MESSAGE = 2 ** 31 - 1;
/** Leaves room for what is added to it, in a file name of at most 255 bytes. */
const LONGEST_NAME = 150;

const OPTIONS = {
  name: [requireName],
  dataPath: [requirePath],
  maxBytesPerFile: [integer(SMALLEST_FILE.nsq), 100 * MIB],
  minMessageSize: [integer(0), 0],
  maxMessageSize: [integer(0, LARGEST_MESSAGE), MIB],
  durability: [oneOf('always', 'interval', 'os'), 'always'],
  syncEvery: [integer(1), 2_500],
  syncTimeoutMs: [integer(1), 2_000],
  maxBytesTotal: [orInfinity(integer(1)), Infinity],
  whenFull: [oneOf('reject', 'wait'), 'reject'],
  format: [oneOf('checked', 'nsq'), 'checked'],
  onCorruption: [requireFunction, warn],
  clock: [requireClock, systemClock],
  metrics: [requireMetrics, undefined],
} satisfies OptionTable<DiskQueueOptions>;

/** The options with every default filled in. */
export interface ResolvedDiskQueueOptions extends Resolved<DiskQueueOptions, typeof OPTIONS> {
  /** Absolute: the process may change its working directory. */
  readonly folder: string;
  readonly files: FileSystem;
}

export function resolveDiskQueueOptions(options: DiskQueueOptions): ResolvedDiskQueueOptions {
  const resolved = readOptions('DiskQueue.open', options, OPTIONS);
  const { format, maxBytesPerFile, minMessageSize, maxMessageSize, dataPath } = resolved;
  requireIntegerAtLeast('options.maxBytesPerFile', SMALLEST_FILE[format], maxBytesPerFile);
  requireIntegerAtLeast('options.maxMessageSize', minMessageSize, maxMessageSize);
  const files = (options as { [FILE_SYSTEM]?: FileSystem })[FILE_SYSTEM] ?? hostFileSystem;
  return { ...resolved, folder: resolve(dataPath), files };
}

function requireName(argument: string, name: unknown): void {
  requireString(argument, name);
  const isFileName = name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name);
  if (!isFileName) throw wrongValue(argument, 'a name for files, without slashes', name);
  // The host writes half a surrogate pair as U+FFFD: the files would not be found under the name they were made with.
  if (/\p{Surrogate}/u.test(name)) throw wrongValue(argument, 'well-formed Unicode', name);
  if (Buffer.byteLength(name) > LONGEST_NAME)
    throw wrongValue(argument, `at most ${LONGEST_NAME} bytes`, name);
}

function requirePath(argument: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw wrongType(argument, 'a path', value);
}

/** Damage must not pass in silence. */
function warn({ file, offset, bytes, reason }: CorruptionEvent): void {
  process.emitWarning(`${file}: ${bytes} bytes at ${offset} are damaged: ${reason}`, 'DiskQueueCorruption');
}
