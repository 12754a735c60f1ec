import { resolve } from 'node:path';
import { requireClock, systemClock, type Clock } from '../core/clock.ts';
import { wrongValue } from '../core/errors.ts';
import { integer, oneOf, orInfinity, readOptions, type OptionTable, type Resolved } from '../core/options.ts';
import { requireFunction, requireIntegerAtLeast, requirePath, requireString } from '../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import type { Durability } from '../log/commit-loop.ts';
import { FILE_SYSTEM, hostFileSystem, type FileSystem } from '../log/file-system.ts';
import { warnOfCorruption, type CorruptionEvent } from '../log/segment.ts';

export type { Durability };

/** Options of `DiskQueue.open`. */
export interface DiskQueueOptions {
  /**
   * Name of the queue, and prefix of its files: well-formed Unicode without slashes, at most 150 bytes. Queues of different
   * names can share a folder.
   */
  readonly name: string;
  /** The folder of the files; created if it does not exist. */
  readonly dataPath: string;
  /**
   * Maximum size of a file, in bytes: an integer of at least 1. A larger message gets a file of its own.
   *
   * @default 100 MiB
   */
  readonly maxBytesPerFile?: number | undefined;
  /** Minimum size of a message, in bytes. @default 0 */
  readonly minMessageSize?: number | undefined;
  /** Maximum size of a message, in bytes, at most 2^31 - 1. Limits `put`, not what is stored already. @default 1 MiB */
  readonly maxMessageSize?: number | undefined;
  /**
   * When `put` resolves, and what that means.
   *
   * - `'always'`: when the message is on the disk. Puts that arrive during a sync share the next one.
   * - `'interval'`: when the operating system has it. It is on the disk after `syncEvery` operations, after
   *   `syncTimeoutMs`, or after `flush`.
   * - `'os'`: when the operating system has it: it survives a crash of the process, not of the machine.
   *
   * @default 'always'
   */
  readonly durability?: Durability | undefined;
  /** Number of puts and acknowledgements after which everything is synced: an integer >= 1. @default 2_500 */
  readonly syncEvery?: number | undefined;
  /**
   * Time in milliseconds after which everything is synced with `'interval'`, and acknowledgements with any durability.
   *
   * @default 2_000
   */
  readonly syncTimeoutMs?: number | undefined;
  /** Maximum bytes of messages that are not acknowledged; see `whenFull`. @default Infinity */
  readonly maxBytesTotal?: number | undefined;
  /** `'reject'`: `put` rejects with `ERR_QUEUE_FULL`. `'wait'`: it waits for capacity, in order. @default 'reject' */
  readonly whenFull?: 'reject' | 'wait' | undefined;
  /** `'checked'`: with checksums. `'nsq'`: the files of go-diskqueue, byte for byte. @default 'checked' */
  readonly format?: 'checked' | 'nsq' | undefined;
  /**
   * Called for damage that was found in the files and skipped. Must not throw.
   *
   * @default `process.emitWarning`
   */
  readonly onCorruption?: ((event: CorruptionEvent) => void) | undefined;
  /** Clock of the interval, and of measured durations. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Provider of the metrics that docs/metrics.md lists. @default none */
  readonly metrics?: MetricsProvider | undefined;
}

const MIB = 1024 * 1024;
/** The largest signed 32-bit length. */
const LARGEST_MESSAGE = 2 ** 31 - 1;
/** In bytes. A file name has at most 255, and begins with this name. */
const LONGEST_NAME = 150;

const OPTIONS = {
  name: [requireName],
  dataPath: [requirePath],
  maxBytesPerFile: [integer(1), 100 * MIB],
  minMessageSize: [integer(0), 0],
  maxMessageSize: [integer(0, LARGEST_MESSAGE), MIB],
  durability: [oneOf('always', 'interval', 'os'), 'always'],
  syncEvery: [integer(1), 2_500],
  syncTimeoutMs: [integer(1), 2_000],
  maxBytesTotal: [orInfinity(integer(1)), Infinity],
  whenFull: [oneOf('reject', 'wait'), 'reject'],
  format: [oneOf('checked', 'nsq'), 'checked'],
  onCorruption: [requireFunction, warnOfCorruption('DiskQueueCorruption')],
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
  const { minMessageSize, maxMessageSize, dataPath } = resolved;
  requireIntegerAtLeast('options.maxMessageSize', minMessageSize, maxMessageSize);
  const files = (options as { [FILE_SYSTEM]?: FileSystem })[FILE_SYSTEM] ?? hostFileSystem;
  return { ...resolved, folder: resolve(dataPath), files };
}

function requireName(argument: string, name: unknown): void {
  requireString(argument, name);
  const isFileName = name !== '' && name !== '.' && name !== '..' && !/[/\\\0]/.test(name);
  if (!isFileName) throw wrongValue(argument, 'a name for files, without slashes', name);
  // Half a surrogate pair is written as U+FFFD: the files would not be found under the name of the queue.
  if (/\p{Surrogate}/u.test(name)) throw wrongValue(argument, 'well-formed Unicode', name);
  if (Buffer.byteLength(name) > LONGEST_NAME)
    throw wrongValue(argument, `at most ${LONGEST_NAME} bytes`, name);
}
