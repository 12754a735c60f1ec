import { resolve } from 'node:path';
import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { illegalConstructor } from '../../../core/errors.ts';
import { integer, oneOf, readOptions, type OptionTable } from '../../../core/options.ts';
import { guarded } from '../../../core/report-uncaught.ts';
import { requireFunction, requirePath } from '../../../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../../../metrics/provider.ts';
import { BrokerBase, type Operations } from '../broker-base.ts';
import { FILE_SYSTEM, hostFileSystem, type FileSystem } from '../../../log/file-system.ts';
import { warnOfCorruption, type CorruptionEvent } from '../../../log/segment.ts';
import { BROKER_SETTINGS, type BrokerSettings } from '../broker-settings.ts';
import { brokerClosed, hostUnavailable, withOperation } from '../broker-errors.ts';
import type { BrokerListener, Subscription } from '../broker.ts';
import { TRANSFER, type Transfer } from '../transfer.ts';
import { ADMINISTRATION } from './administration.ts';
import { DurableStore, durableOperations, openingError } from './durable-store.ts';
import { INSPECTION } from './inspection.ts';
import type { Journal } from './journal.ts';
import { LIFE_OF_A_TASK } from './life-of-a-task.ts';
import { TaskStore } from './task-store.ts';
import { EmbeddedTransfer } from './transfer.ts';

export type { CorruptionEvent };

/** Names the method for the integrity checker, which may be in another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.embedded-broker.internals');

/** @internal Key of an option of `open`: the folder is read, and does not change. The command inspects idle folders so. */
export const FOR_READING: unique symbol = Symbol.for('escapement.embedded-broker.for-reading');

interface InternalOptions {
  readonly [FILE_SYSTEM]?: FileSystem;
  readonly [FOR_READING]?: boolean;
}

interface EmbeddedBrokerInternals {
  /** Undefined once the broker is closed. */
  readonly store: TaskStore | undefined;
  /** Undefined without a folder, too. */
  readonly journal: Journal | undefined;
}

/** Options of an `EmbeddedBroker`. */
export interface EmbeddedBrokerOptions extends BrokerSettings {
  /** A folder of its own, which is made if it does not exist: tasks survive the process and the machine. @default memory only */
  readonly dataPath?: string | undefined;
  /**
   * When an operation that changes something settles: `'always'` when the change is on the disk, so that it survives the machine;
   * `'os'` when the host has it, so that it survives the process; `'interval'` at once, and the change is on the disk at most
   * `syncTimeoutMs` later. @default 'always'
   */
  readonly durability?: 'always' | 'interval' | 'os' | undefined;
  /** With `'interval'`, the time in milliseconds after which a change is on the disk. At least 1. @default 2_000 */
  readonly syncTimeoutMs?: number | undefined;
  /** Size of a file, in bytes: a larger record gets a file of its own. At least 4_096. @default 67_108_864: 64 MiB */
  readonly maxBytesPerFile?: number | undefined;
  /** Called with damage that was found in the files and stepped over. What it throws is an uncaught exception. @default a warning of the process */
  readonly onCorruption?: ((event: CorruptionEvent) => void) | undefined;
  /** Where the sizes of the log and the durations of its writes and syncs are reported. Only with a folder. @default none */
  readonly metrics?: MetricsProvider | undefined;
}

const OPTIONS = {
  ...BROKER_SETTINGS,
  dataPath: [requirePath, undefined],
  durability: [oneOf('always', 'interval', 'os'), 'always'],
  syncTimeoutMs: [integer(1), 2_000],
  maxBytesPerFile: [integer(4_096), 64 * 1_024 * 1_024],
  onCorruption: [requireFunction, warnOfCorruption('BrokerCorruption')],
  metrics: [requireMetrics, undefined],
} satisfies OptionTable<EmbeddedBrokerOptions>;

const OPERATIONS: Operations<TaskStore> = {
  ping: () => undefined,
  ...LIFE_OF_A_TASK,
  ...INSPECTION,
  ...ADMINISTRATION,
  subscribe: (store, listener) => store.subscribe(listener),
  cancel: (store, request) => store.notifications.cancel(request),
};

const DURABLE_OPERATIONS = /* @__PURE__ */ durableOperations(OPERATIONS);

/**
 * A broker in the process: nothing to install. Its tasks end with the process, or are in a folder and survive it: see `dataPath`.
 *
 * Without a folder every operation is done when it returns; its promise is settled already. One timer forwards due tasks, ends leases and
 * removes expired tasks, to the millisecond: nothing polls. The timer keeps the process alive while there is a subscription
 * (a server has one), and not otherwise, because then no server would run the tasks.
 *
 * @example
 * ```ts
 * const broker = await EmbeddedBroker.open();
 * const client = new Client({ broker });
 * const server = new Server({ broker });
 * ```
 */
export class EmbeddedBroker extends BrokerBase {
  override readonly maintenance = [];
  /** The absolute path of the folder of the tasks; undefined if they are in memory only. */
  readonly dataPath: string | undefined;
  #store: TaskStore | undefined;
  #durable: DurableStore | undefined;
  #closing = Promise.resolve();

  private constructor(store: TaskStore, durable?: DurableStore, dataPath?: string) {
    if (!(store instanceof TaskStore)) {
      throw illegalConstructor('EmbeddedBroker', 'await EmbeddedBroker.open({ … })');
    }
    super('EmbeddedBroker', store.clock, durable ? DURABLE_OPERATIONS : OPERATIONS, durable ?? store);
    this.#store = store;
    this.#durable = durable;
    this.dataPath = dataPath;
  }

  /**
   * Opens the broker of a folder, or one that is in memory only. O(tasks of the folder).
   *
   * @throws TypeError or RangeError - an option is not valid.
   * @throws EscapementError `ERR_BROKER_LOCKED` - the folder has a broker that is open, here or in another process.
   * `ERR_BROKER_UNAVAILABLE` - it cannot be made, read, locked or written to. The `cause` is the error of the host, with its
   * `code` and `path`.
   */
  static async open(options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
    const resolved = readOptions('EmbeddedBroker.open', options, OPTIONS);
    const store = new TaskStore(resolved);
    if (resolved.dataPath === undefined) return new EmbeddedBroker(store);
    const dataPath = resolve(resolved.dataPath); // the process may change its working directory
    try {
      const { [FILE_SYSTEM]: files = hostFileSystem, [FOR_READING]: isForReading } =
        options as InternalOptions;
      const onCorruption = (event: CorruptionEvent): void => {
        guarded(() => {
          resolved.onCorruption(event);
        });
      };
      const all = { ...resolved, dataPath, files, onCorruption };
      const opening =
        isForReading === true ? DurableStore.openForReading(store, all) : DurableStore.open(store, all);
      return new EmbeddedBroker(store, await opening, dataPath);
    } catch (error) {
      store.close();
      throw withOperation(openingError(error, dataPath), 'EmbeddedBroker.open');
    }
  }

  /**
   * Resolves when every earlier change is on the disk; immediately without a folder. Rejects with `ERR_BROKER_UNAVAILABLE` if one since
   * the last `flush` is lost whose operation had resolved, which `'interval'` allows.
   */
  flush(): Promise<void> {
    return this.perform('flush', async () => this.#durable?.journal.flush());
  }

  /**
   * Ends the broker. Without a folder its tasks are discarded; with one, it resolves when everything is on the disk, and rejects as
   * `flush` does. A bulk operation in progress stops and rejects.
   */
  override close(): Promise<void> {
    if (!this.closeOperations()) return this.#closing;
    this.#store?.close();
    const closing = this.#durable?.close().catch((error: unknown) => {
      const named = hostUnavailable(error, `the folder ${this.dataPath} cannot be closed`);
      throw withOperation(named, 'EmbeddedBroker.close');
    });
    if (closing !== undefined) this.#closing = closing;
    this.#store = undefined;
    this.#durable = undefined;
    return this.#closing;
  }

  /** The listener is notified of events in all queues. */
  override subscribe(listener: BrokerListener, queues: readonly string[] = []): Promise<Subscription> {
    return super.subscribe(listener, queues);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => {
      const queues = this.#store && [...this.#store.queues.values()];
      return {
        ...{
          clock: undefined,
          maintenance: undefined,
          dataPath: this.dataPath,
          state: queues ? 'open' : 'closed',
        },
        queues: queues?.length,
        tasks: queues?.reduce((tasks, { rows }) => tasks + rows.size, 0),
      };
    });
  }

  /** @internal For `copyTasks`. @throws EscapementError `ERR_BROKER_CLOSED` */
  [TRANSFER](): Transfer {
    if (this.#store === undefined) throw brokerClosed();
    return new EmbeddedTransfer(this.#store, this.#durable);
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): EmbeddedBrokerInternals {
    return { store: this.#store, journal: this.#durable?.journal };
  }
}
