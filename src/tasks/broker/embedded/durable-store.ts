import { EscapementError } from '../../../core/errors.ts';
import type { FileSystem } from '../../../log/file-system.ts';
import { Log, type LogOptions } from '../../../log/log.ts';
import { LogLock } from '../../../log/log-lock.ts';
import type { CorruptionEvent } from '../../../log/segment.ts';
import { counter, duration, gauges } from '../../../metrics/measure.ts';
import type { MetricsProvider } from '../../../metrics/provider.ts';
import type { AnyOperation, BrokerOperation, Operations } from '../broker-base.ts';
import type { LeasedTask, TaskRecord, TaskSet } from '../broker.ts';
import type { TaskMessage } from '../../task-message.ts';
import { Journal, type Durability } from './journal.ts';
import { PayloadOnDisk } from './journaled-row.ts';
import { LIFE_OF_A_TASK } from './life-of-a-task.ts';
import { replay, type Replayed } from './replay.ts';
import type { TaskStore } from './task-store.ts';
import type { FolderAccess } from './transfer.ts';

/** Name of the log of a broker: the prefix of its files. */
export const LOG_NAME = 'tasks';

/** The journal of a store, or what stands in for it in a folder that is only read. */
type AnyJournal = Pick<
  Journal,
  'log' | 'entries' | 'requireAvailable' | 'begin' | 'written' | 'settled' | 'flush' | 'close'
>;

export interface DurableOptions {
  readonly metrics: MetricsProvider | undefined;
  readonly files: FileSystem;
  readonly dataPath: string;
  readonly durability: Durability;
  readonly syncTimeoutMs: number;
  readonly maxBytesPerFile: number;
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/** A store with the folder that its changes are written to. */
export class DurableStore {
  readonly store: TaskStore;
  readonly journal: AnyJournal;
  readonly #lock: LogLock | undefined;
  readonly #removeMetrics: (() => void) | undefined;

  private constructor(store: TaskStore, journal: AnyJournal, lock?: LogLock, removeMetrics?: () => void) {
    this.store = store;
    this.journal = journal;
    this.#lock = lock;
    this.#removeMetrics = removeMetrics;
  }

  /**
   * Takes the folder, and reads it into an empty store.
   *
   * @throws EscapementError `ERR_BROKER_LOCKED` - another process, another thread or this one has the folder.
   */
  static async open(store: TaskStore, options: DurableOptions): Promise<DurableStore> {
    const { files, dataPath, metrics } = options;
    await files.makeFolder(dataPath);
    const lock = await lockOf(dataPath);
    let journal: Journal | undefined;
    try {
      const { log, liveBytes, recovered } = await load(store, options);
      journal = new Journal(store, log, liveBytes, { ...options, clock: store.clock }, () =>
        reload(store, options),
      );
      store.journal = journal;
      store.reserveSerials();
      for (const row of recovered) journal.change(row);
      catchUp(store);
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
  static async openForReading(store: TaskStore, options: DurableOptions): Promise<DurableStore> {
    const log = await Log.openForReading(logOptions(store, options));
    await replay(store, log, options.onCorruption);
    catchUp(store);
    const done = Promise.resolve();
    return new DurableStore(store, {
      ...{ log, entries: 0, begin: () => undefined },
      requireAvailable() {
        throw new EscapementError('ERR_BROKER_UNAVAILABLE', 'the folder was opened for reading');
      },
      ...{ written: () => done, settled: () => done, flush: () => done, close: () => log.close() },
    });
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

/** What has become due, and what has expired, while no process had the folder. */
function catchUp(store: TaskStore): void {
  const queues = [...store.queues.keys()];
  LIFE_OF_A_TASK.forward(store, queues);
  LIFE_OF_A_TASK.deleteExpired(store, queues, Number.MAX_SAFE_INTEGER);
}

/** What was read from a log. */
interface Loaded extends Replayed {
  readonly log: Log;
}

/** @param prepare - called with the log, before it is read. */
async function load(
  store: TaskStore,
  options: DurableOptions,
  prepare: (log: Log) => Promise<void> = () => Promise.resolve(),
): Promise<Loaded> {
  const { log } = await Log.open(logOptions(store, options));
  await prepare(log);
  return { log, ...(await replay(store, log, options.onCorruption)) };
}

function logOptions(
  { clock }: TaskStore,
  { files, dataPath, durability, maxBytesPerFile }: DurableOptions,
): LogOptions {
  return {
    ...{ files, folder: dataPath, name: LOG_NAME, maxBytesPerFile, isAlwaysDurable: durability === 'always' },
    wallNow: () => clock.wallNow(),
  };
}

/** Reads the log again when the disk was full: changes that were refused are in the memory. Runs keep their leases. */
async function reload(store: TaskStore, options: DurableOptions): Promise<Loaded> {
  let leases: ReturnType<TaskStore['clear']> | undefined;
  const loaded = await load(store, options, async (log) => {
    await log.beginSegment(); // rejects if there is no room
    leases = store.clear();
  });
  for (const row of loaded.recovered) {
    const lease = leases?.get(row.number);
    if (lease !== undefined) store.restoreLease(row, lease);
  }
  for (const queue of store.queues.values()) store.notifications.work(queue);
  return loaded;
}

/** Upper bounds in seconds, from a tenth of a millisecond to ten seconds. */
const COMMIT_BUCKETS = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5, 1, 10];

/** @returns a function that removes the gauges, which would keep a closed broker in memory. */
function measure(journal: Journal, metrics: MetricsProvider, folder: string): () => void {
  const labels = { folder };
  const help = 'Duration of the write of a batch of changes, including its sync if there was one.';
  journal.onCommit = duration(
    metrics,
    'escapement_broker_commit_duration_seconds',
    help,
    COMMIT_BUCKETS,
    labels,
  );
  const removed = 'Files of the log that were compacted and removed.';
  journal.onRemoval = counter(metrics, 'escapement_broker_files_removed_total', removed, labels);
  return gauges(metrics, [
    ['escapement_broker_log_bytes', 'Bytes of the log.', () => journal.logBytes, labels],
    ['escapement_broker_live_bytes', 'Bytes of the log that tasks need.', () => journal.liveBytes, labels],
  ]);
}

async function lockOf(folder: string): Promise<LogLock> {
  try {
    return await LogLock.acquire(folder, LOG_NAME);
  } catch (error) {
    if (!(error instanceof EscapementError) || error.code !== 'ERR_QUEUE_LOCKED') throw error;
    const message = `the folder ${folder} has a broker that is open, here or in another process`;
    throw new EscapementError('ERR_BROKER_LOCKED', message, { cause: error.cause });
  }
}

/** Operations that change nothing of what is stored. */
const READING: ReadonlySet<BrokerOperation> = new Set<BrokerOperation>([
  ...([
    'ping',
    'lastTickMs',
    'groups',
    'subscribe',
    'cancel',
    'announceServer',
    'withdrawServer',
    'servers',
  ] as const),
  ...(['announceScheduler', 'withdrawScheduler', 'scheduleEntries', 'enqueueEvents', 'queues'] as const),
  ...(['queueStats', 'history', 'task', 'tasks', 'repair', 'extendLeases'] as const),
]);

/** Operations that return messages, with their payloads. */
const RETURNING: ReadonlySet<BrokerOperation> = new Set<BrokerOperation>([
  ...(['dequeue', 'recover', 'takeGroup', 'task', 'tasks'] as const),
]);

/**
 * Makes the operations of the broker in memory durable: one that changes something settles when that is on the disk, and one that
 * leases tasks when the host knows of it. A task that kills its process has started as far as the next one knows.
 */
export function durableOperations(operations: Operations<TaskStore>): Operations<DurableStore> {
  const wrapped = Object.entries(operations).map(([name, operation]) => [
    name,
    durable(name as BrokerOperation, operation as AnyOperation),
  ]);
  return Object.fromEntries(wrapped) as Operations<DurableStore>;
}

function durable(name: BrokerOperation, operation: AnyOperation): AnyOperation {
  const isReading = READING.has(name);
  const isReturning = RETURNING.has(name);
  const isLeasing = name === 'dequeue' || name === 'recover';
  return (durableStore, a, b, c, d) => {
    const { store, journal } = durableStore as DurableStore;
    if (!isReading) {
      journal.requireAvailable();
      journal.begin();
    }
    const before = journal.entries;
    const result = operation(store, a, b, c, d);
    if (result instanceof Promise) return result.then((value: unknown) => settled(journal, before, value));
    const returned = isReturning ? withPayloads(store, journal, result as Returned) : result;
    if (journal.entries === before) return returned;
    const settling = isLeasing ? journal.written() : journal.settled();
    return settling === undefined ? returned : settling.then(() => returned);
  };
}

async function settled(journal: AnyJournal, before: number, value: unknown): Promise<unknown> {
  if (journal.entries !== before) await journal.settled();
  return value;
}

/** What the operations return that return messages. */
type Returned = readonly (LeasedTask | TaskRecord)[] | TaskRecord | { readonly set: TaskSet | undefined };

/** Reads the payloads that are on the disk. @returns the result itself if there are none. */
function withPayloads(store: TaskStore, journal: AnyJournal, result: Returned): Returned | Promise<Returned> {
  const load = (message: TaskMessage): Promise<TaskMessage> => loaded(store, journal, message);
  if ('message' in result) {
    return isLoaded(result.message)
      ? result
      : load(result.message).then((message) => ({ ...result, message }));
  }
  if ('set' in result) {
    const { set } = result;
    if (set === undefined || set.messages.every(isLoaded)) return result;
    return Promise.all(set.messages.map(load)).then((messages) => ({ ...result, set: { ...set, messages } }));
  }
  if (result.every(({ message }) => isLoaded(message))) return result;
  return Promise.all(
    result.map(async (entry) =>
      isLoaded(entry.message) ? entry : { ...entry, message: await load(entry.message) },
    ),
  );
}

function isLoaded({ payload }: TaskMessage): boolean {
  return !(payload instanceof PayloadOnDisk);
}

async function loaded(
  store: TaskStore,
  journal: Pick<Journal, 'log'>,
  message: TaskMessage,
): Promise<TaskMessage> {
  for (let { payload } = message; ;) {
    if (!(payload instanceof PayloadOnDisk)) return { ...message, payload };
    const { position, recordBytes, start, length } = payload.where;
    const record = await journal.log.read(position, recordBytes);
    if (record !== undefined)
      return { ...message, payload: new Uint8Array(record.subarray(start, start + length)) };
    // Compaction has moved it meanwhile, or it is damaged.
    const present = store.queues.get(message.queue)?.rows.get(message.id)?.message.payload;
    if (present === undefined || present === payload) throw payloadLost(message);
    payload = present;
  }
}

/** What a transfer of tasks needs of the folder. */
export function folderAccessOf({ store, journal }: DurableStore): FolderAccess {
  return {
    load: (message) => loaded(store, journal, message),
    begin() {
      journal.requireAvailable();
      journal.begin();
    },
    settled: () => journal.settled(),
  };
}

function payloadLost({ id, queue }: TaskMessage): EscapementError {
  const message = `the payload of task '${id}' of queue '${queue}' cannot be read: its record is damaged`;
  return new EscapementError('ERR_WIRE_MESSAGE', message);
}
