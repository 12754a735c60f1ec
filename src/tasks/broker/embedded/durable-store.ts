import { EscapementError, wrongValue } from '../../../core/errors.ts';
import { COMMIT_BUCKETS } from '../../../log/commit-loop.ts';
import type { FileSystem } from '../../../log/file-system.ts';
import { Log } from '../../../log/log.ts';
import { LogLock, LogTaken, NoSockets } from '../../../log/log-lock.ts';
import { ForeignLog } from '../../../log/recover-segments.ts';
import { counter, duration, gauges } from '../../../metrics/measure.ts';
import type { MetricsProvider } from '../../../metrics/provider.ts';
import type { AnyOperation, Operations } from '../broker-base.ts';
import { brokerClosed, hostUnavailable } from '../broker-errors.ts';
import {
  BROKER_OPERATIONS,
  type BrokerOperation,
  type OperationRow,
  type ReturningOperation,
} from '../broker-operations.ts';
import { ENTRIES } from './journal-format.ts';
import { Journal, type JournalOptions, type Reload } from './journal.ts';
import { LIFE_OF_A_TASK } from './life-of-a-task.ts';
import { PAYLOAD_LOADERS } from './payload-loading.ts';
import { eventOf, leasesOf, type Loading, replay } from './replay.ts';
import { ROWS_PER_TURN, type TaskStore } from './task-store.ts';

/** Name of the log of a broker: the prefix of its files. */
export const LOG_NAME = 'tasks';

interface DurableOptions extends JournalOptions {
  readonly metrics: MetricsProvider | undefined;
  readonly files: FileSystem;
  readonly dataPath: string;
}

/** A store with the folder that its changes are written to. */
export class DurableStore {
  readonly store: TaskStore;
  readonly journal: Journal;
  readonly #lock: LogLock | undefined;
  readonly #removeMetrics: (() => void) | undefined;

  private constructor(store: TaskStore, journal: Journal, lock?: LogLock, removeMetrics?: () => void) {
    this.store = store;
    this.journal = journal;
    this.#lock = lock;
    this.#removeMetrics = removeMetrics;
  }

  /** Takes the folder, and reads it into an empty store. Rejects with errors of the log: see {@link openingError}. */
  static async open(store: TaskStore, options: DurableOptions): Promise<DurableStore> {
    const { files, dataPath, metrics } = options;
    await files.makeFolder(dataPath);
    const lock = await LogLock.acquire(dataPath, LOG_NAME);
    let journal: Journal | undefined;
    try {
      const { log, loading } = await load(store, options);
      const recovered = loading.finish();
      journal = new Journal(store, log, loading.live, options, () => reload(store, options));
      store.journal = journal;
      store.reserveSerials();
      for (const row of recovered) journal.change(row);
      catchUp(store, ROWS_PER_TURN); // the timer does the rest
      await journal.flush();
      const removeMetrics = metrics && measure(journal, metrics, dataPath);
      return new DurableStore(store, journal, lock, removeMetrics);
    } catch (error) {
      await journal?.close().catch(() => undefined);
      await lock.release();
      throw error;
    }
  }

  /** Reads the folder into an empty store, and takes no lock: nothing in the folder changes, and changes are refused. */
  static async openForReading(store: TaskStore, given: DurableOptions): Promise<DurableStore> {
    const options = { ...given, isReadOnly: true };
    const { log, loading } = await load(store, options);
    loading.finish();
    catchUp(store, Infinity);
    const journal = new Journal(store, log, loading.live, options, () => reload(store, options));
    return new DurableStore(store, journal);
  }

  async close(): Promise<void> {
    this.#removeMetrics?.();
    try {
      await this.journal.close();
    } finally {
      await this.#lock?.release();
    }
  }
}

/** What has become due, and what has expired, while no process had the folder. @param limit - of the tasks of a queue. */
function catchUp(store: TaskStore, limit: number): void {
  for (const queue of store.queues.values()) store.forwardDue(queue, limit);
  LIFE_OF_A_TASK.deleteExpired(store, [...store.queues.keys()], limit);
}

/** Opens the log of a folder, and reads it. @param prepare - called with the log, before it is read. */
async function load(
  store: TaskStore,
  { files, dataPath, durability, maxBytesPerFile, onCorruption, isReadOnly = false }: DurableOptions,
  prepare?: (log: Log) => Promise<unknown>,
): Promise<{ readonly log: Log; readonly loading: Loading }> {
  const { log, found } = await Log.open({
    ...{ files, folder: dataPath, name: LOG_NAME, recordType: ENTRIES, maxBytesPerFile, isReadOnly },
    isAlwaysDurable: durability === 'always',
    wallNow: () => store.clock.wallNow(),
  });
  try {
    for (const event of found.misplaced) onCorruption(event);
    // A reader finds all other damage.
    for (const { segment, piece } of found.damages)
      if (segment.header === undefined) onCorruption(eventOf(segment.path, piece));
    await prepare?.(log);
    return { log, loading: await replay(store, log, onCorruption) };
  } catch (error) {
    const { written } = log;
    await log.close().catch(() => undefined);
    if (written !== undefined) await log.remove([written]).catch(() => undefined); // it is empty
    throw error;
  }
}

/**
 * Reads the log again when the disk was full: changes that were refused are in the memory. Runs keep their leases. If it rejects, the
 * store is as it was.
 */
async function reload(store: TaskStore, options: DurableOptions): ReturnType<Reload> {
  const { log, loading } = await load(store, options, (opened) => opened.beginSegment()); // rejects if there is no space
  if (store.isClosed) {
    await log.close();
    throw brokerClosed();
  }
  loading.finish(leasesOf(store));
  for (const queue of store.queues.values()) store.notifications.work(queue);
  return { log, live: loading.live };
}

/** @returns a function that removes the gauges, which would keep a closed broker in memory. */
function measure(journal: Journal, metrics: MetricsProvider, folder: string): () => void {
  const labels = { folder };
  const histogram = (name: string, help: string): ((durationMs: number) => void) =>
    duration(metrics, name, help, COMMIT_BUCKETS, labels);
  const total = (name: string, help: string): ((by?: number) => void) => counter(metrics, name, help, labels);
  const commit = 'Duration of the write of a batch of changes, including its sync if there was one.';
  const moved = 'Bytes that compaction has moved to newer files of the log.';
  const removed = 'Files of the log that were compacted and removed.';
  journal.meter = {
    committed: histogram('escapement_broker_commit_duration_seconds', commit),
    synced: histogram('escapement_broker_sync_duration_seconds', 'Duration of a sync of the log.'),
    moved: total('escapement_broker_compacted_bytes_total', moved),
    removed: total('escapement_broker_files_removed_total', removed),
  };
  return gauges(metrics, [
    ['escapement_broker_log_bytes', 'Bytes of the log.', () => journal.logBytes, labels],
    ['escapement_broker_live_bytes', 'Bytes of the log that tasks need.', () => journal.live.bytes, labels],
  ]);
}

/** Returns the error of a broker for an error that opening its folder has thrown. */
export function openingError(error: unknown, folder: string): unknown {
  if (error instanceof LogTaken) {
    const message = `the folder ${folder} has a broker that is open, here or in another process`;
    return new EscapementError('ERR_BROKER_LOCKED', message, { cause: error.cause });
  }
  if (error instanceof NoSockets)
    return new EscapementError('ERR_BROKER_UNAVAILABLE', error.message, { cause: error.cause });
  if (error instanceof ForeignLog)
    return wrongValue('options.dataPath', `a folder without a disk queue of the name '${LOG_NAME}'`, folder);
  return hostUnavailable(error, `the folder ${folder} cannot be opened`);
}

/**
 * Makes the operations of the broker in memory durable: one that changes something settles when that is on the disk, and one that
 * leases tasks when the host has it. So a task that kills its process has started in the records that the next process reads.
 */
export function durableOperations(operations: Operations<TaskStore>): Operations<DurableStore> {
  const wrapped = Object.entries(operations).map(([name, operation]) => [
    name,
    durable(name as BrokerOperation, operation as AnyOperation),
  ]);
  return Object.fromEntries(wrapped) as Operations<DurableStore>;
}

function durable(name: BrokerOperation, operation: AnyOperation): AnyOperation {
  const { isReading = false, isLeasing = false }: OperationRow<never> = BROKER_OPERATIONS[name];
  const load = PAYLOAD_LOADERS[name as ReturningOperation] as AnyOperation | undefined;
  return (durableStore, a, b, c, d) => {
    const { store, journal } = durableStore as DurableStore;
    if (!isReading) {
      journal.requireAvailable();
      journal.begin();
    }
    const before = journal.entries;
    let result: unknown;
    try {
      result = operation(store, a, b, c, d);
    } catch (error) {
      if (journal.entries === before) throw error;
      // The tick of a schedule is used up, also if its task is a duplicate.
      return Promise.resolve(journal.settled()).then(() => {
        throw error;
      });
    }
    const returned = load === undefined ? result : load(durableStore, result);
    if (journal.entries === before) return returned;
    const settling = isLeasing ? journal.written() : journal.settled();
    if (settling === undefined) return returned;
    if (!(returned instanceof Promise)) return settling.then(() => returned);
    // Both at once: neither may be an unhandled rejection meanwhile. An operation that goes on in later turns waits for what it writes there.
    return Promise.all([returned as Promise<unknown>, settling]).then(([value]) => value);
  };
}
