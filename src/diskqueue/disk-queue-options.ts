import { resolve } from 'node:path';
import { systemClock, type Clock } from '../core/clock.ts';
import { outOfRange, wrongType, wrongValue } from '../core/errors.ts';
import { requireClock } from '../core/require-clock.ts';
import {
  requireFunction,
  requireIntegerAtLeast,
  requireOneOf,
  requireOptions,
  type OptionNames,
} from '../core/validate.ts';
import type { MetricsProvider } from '../metrics/provider.ts';
import { requireMetrics } from '../metrics/require-metrics.ts';
import { hostFileSystem, type FileSystem } from './file-system.ts';
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
   * Told of damage that was found in the files and stepped over. It must not throw.
   *
   * @default a warning of the process
   */
  readonly onCorruption?: (event: CorruptionEvent) => void;
  /** For the interval, and for the durations that are measured. @default systemClock */
  readonly clock?: Clock;
  /** Gets the measurements that docs/diskqueue.md lists. @default none */
  readonly metrics?: MetricsProvider;
}

const OPTIONS: OptionNames<DiskQueueOptions> = {
  ...{ name: true, dataPath: true, maxBytesPerFile: true, minMessageSize: true, maxMessageSize: true },
  ...{ durability: true, syncEvery: true, syncTimeoutMs: true, maxBytesTotal: true, whenFull: true },
  ...{ format: true, onCorruption: true, clock: true, metrics: true },
};

/** The options with every default filled in. */
export interface ResolvedDiskQueueOptions {
  readonly name: string;
  /** Absolute: the process may go elsewhere. */
  readonly folder: string;
  readonly maxBytesPerFile: number;
  readonly minMessageSize: number;
  readonly maxMessageSize: number;
  readonly durability: Durability;
  readonly syncEvery: number;
  readonly syncTimeoutMs: number;
  readonly maxBytesTotal: number;
  readonly whenFull: 'reject' | 'wait';
  readonly format: 'checked' | 'nsq';
  readonly onCorruption: (event: CorruptionEvent) => void;
  readonly clock: Clock;
  readonly metrics: MetricsProvider | undefined;
  readonly files: FileSystem;
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

export function resolveDiskQueueOptions(options: DiskQueueOptions): ResolvedDiskQueueOptions {
  requireOptions('DiskQueue.open', options, OPTIONS);
  const { name, dataPath, durability = 'always', format = 'checked', whenFull = 'reject' } = options;
  const { clock = systemClock, metrics, onCorruption = warn } = options;
  requireName(name);
  if (typeof dataPath !== 'string' || dataPath === '') throw wrongType('dataPath', 'a path', dataPath);
  requireOneOf('durability', ['always', 'interval', 'os'], durability);
  requireOneOf('format', ['checked', 'nsq'], format);
  requireOneOf('whenFull', ['reject', 'wait'], whenFull);
  requireFunction('onCorruption', onCorruption);
  requireClock('clock', clock);
  if (metrics !== undefined) requireMetrics('metrics', metrics);
  const files = (options as { [FILE_SYSTEM]?: FileSystem })[FILE_SYSTEM] ?? hostFileSystem;
  return {
    ...{ name, folder: resolve(dataPath), durability, format, whenFull, clock, metrics, onCorruption, files },
    ...resolveNumbers(options, format),
  };
}

function resolveNumbers(options: DiskQueueOptions, format: 'checked' | 'nsq') {
  const { maxBytesPerFile = 100 * MIB, minMessageSize = 0, maxMessageSize = MIB } = options;
  const { syncEvery = 2_500, syncTimeoutMs = 2_000, maxBytesTotal = Infinity } = options;
  requireIntegerAtLeast('maxBytesPerFile', SMALLEST_FILE[format], maxBytesPerFile);
  requireIntegerAtLeast('minMessageSize', 0, minMessageSize);
  requireIntegerAtLeast('maxMessageSize', minMessageSize, maxMessageSize);
  if (maxMessageSize > LARGEST_MESSAGE) {
    throw outOfRange('maxMessageSize', `at most ${LARGEST_MESSAGE}`, maxMessageSize);
  }
  requireIntegerAtLeast('syncEvery', 1, syncEvery);
  requireIntegerAtLeast('syncTimeoutMs', 1, syncTimeoutMs);
  if (maxBytesTotal !== Infinity) requireIntegerAtLeast('maxBytesTotal', 1, maxBytesTotal);
  return { maxBytesPerFile, minMessageSize, maxMessageSize, syncEvery, syncTimeoutMs, maxBytesTotal };
}

function requireName(name: unknown): void {
  if (typeof name !== 'string') throw wrongType('name', 'a string', name);
  const isFileName = name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name);
  if (!isFileName) throw wrongValue('name', 'a name for files, without slashes', name);
  // The host writes half a surrogate pair as U+FFFD: the files would not be found under the name they were made with.
  if (/\p{Surrogate}/u.test(name)) throw wrongValue('name', 'well-formed Unicode', name);
  if (Buffer.byteLength(name) > LONGEST_NAME) throw wrongValue('name', `at most ${LONGEST_NAME} bytes`, name);
}

/** Damage must not pass in silence. */
function warn({ file, offset, bytes, reason }: CorruptionEvent): void {
  process.emitWarning(`${file}: ${bytes} bytes at ${offset} are damaged: ${reason}`, 'DiskQueueCorruption');
}
