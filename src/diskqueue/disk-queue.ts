import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import {
  EscapementError,
  illegalConstructor,
  isSystemError,
  type EscapementErrorCode,
} from '../core/errors.ts';
import { guarded } from '../core/report-uncaught.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { CommitLoop } from '../log/commit-loop.ts';
import { ifThere } from '../log/file-system.ts';
import { LogLock } from '../log/log-lock.ts';
import { NoNumberLeft } from '../log/segment.ts';
import { measuredNow } from '../metrics/measure.ts';
import { BackgroundSync } from './background-sync.ts';
import { requireData, type BackendQueue, type Delivery } from './backend-queue.ts';
import { Capacity } from './capacity.ts';
import { Deliveries, MessageIterator } from './deliveries.ts';
import { DiskQueueMetrics } from './disk-queue-metrics.ts';
import {
  resolveDiskQueueOptions,
  type DiskQueueOptions,
  type ResolvedDiskQueueOptions,
} from './disk-queue-options.ts';
import type { DiskQueueSnapshot, MessageLog, StoredMessage } from './message-log.ts';
import { lockQueue, openLog } from './open-log.ts';

/**
 * A queue of messages on a local disk: first in, first out, and it survives a crash.
 *
 *      put ──► commit loop ──► log ──► deliveries ──► receive
 *              (group commit)   │           │
 *                               │◄── acks ──┘      a message that is not acknowledged is delivered again after a reopen
 *                             disk
 *
 * What excludes what: the commit loop runs batches, `flush`, `empty`, `close` and `delete` one after another, in the order of
 * the calls. Saves of acknowledgements, and reads, have a lane each and run beside batches; `empty`, `close` and `delete`
 * run alone, in all three lanes.
 *
 * After nsqio's go-diskqueue, without its losses; docs/diskqueue.md lists the guarantees.
 *
 * @example
 * ```ts
 * const queue = await DiskQueue.open({ name: 'spool', dataPath: '/var/spool/app' });
 * await queue.put(Buffer.from('hello')); // on the disk
 * for await (const message of queue) await forward(message); // acknowledged when the loop requests the next one
 * ```
 */
export class DiskQueue implements BackendQueue {
  /** Label of metrics, and part of error messages. */
  readonly name: string;
  readonly #options: ResolvedDiskQueueOptions;
  readonly #lock: LogLock;
  readonly #log: MessageLog;
  readonly #commits: CommitLoop;
  readonly #syncs: BackgroundSync;
  readonly #deliveries: Deliveries;
  readonly #capacity: Capacity;
  readonly #metrics: DiskQueueMetrics | undefined;
  /** Bytes of messages that are being put: they take capacity, but are not in the log yet. */
  #puttingBytes = 0;
  #closing: Promise<void> | undefined;

  private constructor(
    options: ResolvedDiskQueueOptions,
    lock: LogLock,
    log: MessageLog,
    metrics: DiskQueueMetrics | undefined,
  ) {
    if (!(lock instanceof LogLock)) throw illegalConstructor('DiskQueue', 'await DiskQueue.open({ … })');
    this.#metrics = metrics;
    this.name = options.name;
    this.#options = options;
    this.#lock = lock;
    this.#log = log;
    this.#capacity = new Capacity(options.maxBytesTotal, log.bytes);
    this.#deliveries = new Deliveries(
      () => this.#readLog(),
      (message) => {
        this.#acked(message);
      },
    );
    this.#commits = new CommitLoop(log, options.durability === 'always', {
      now: () => (metrics === undefined ? NaN : measuredNow(options.clock)),
      committed: (messages, bytes, durationMs) => {
        metrics?.committed(messages, durationMs);
        this.#puttingBytes -= bytes;
        this.#recount();
        this.#syncs.committed(messages);
        this.#deliveries.committed();
      },
      refused: (data, error) => {
        this.#puttingBytes -= data.length;
        this.#capacity.release(data.length);
        return asIoError(error, this.name, 'put');
      },
    });
    this.#syncs = new BackgroundSync(log, this.#commits, options);
  }

  /**
   * Opens a queue, or creates one. A queue has one owner at a time.
   *
   * Recovers from a crash. Damage is skipped and reported to `onCorruption`, here and when messages are read.
   *
   * @throws EscapementError `ERR_QUEUE_LOCKED` - the queue is open, here or elsewhere. `ERR_QUEUE_IO` - the file system has
   * failed; nothing has changed.
   * @throws TypeError `ERR_INVALID_ARG_VALUE` - an option is invalid, or the folder has files of this name in the other
   * format, or of a broker.
   */
  static async open(options: DiskQueueOptions): Promise<DiskQueue> {
    const resolved = resolveDiskQueueOptions(options);
    const { files, folder, name } = resolved;
    let lock: LogLock | undefined;
    let log: MessageLog | undefined;
    const metrics = resolved.metrics && new DiskQueueMetrics(resolved.metrics, name, () => log ?? EMPTY);
    try {
      await files.makeFolder(folder);
      lock = await lockQueue(folder, name);
      log = await openLog(resolved, (event) => {
        metrics?.damaged(event);
        // In the middle of a read, which an error of the handler must not interrupt.
        guarded(() => {
          resolved.onCorruption(event);
        });
      });
      return new DiskQueue(resolved, lock, log, metrics);
    } catch (error) {
      metrics?.remove();
      await lock?.release();
      throw asIoError(error, name, 'open');
    }
  }

  /** Number of messages that were put and not acknowledged, those in flight included. O(1). */
  get depth(): number {
    return this.#log.depth;
  }

  /** Bytes of these messages, without the overhead of the files. `maxBytesTotal` also counts those being put. O(1). */
  get bytes(): number {
    return this.#log.bytes;
  }

  /** Returns a copy of the state, for inspection. O(files), at most a thousand; it reads nothing from the disk. */
  inspect(): DiskQueueSnapshot {
    const { name, depth, bytes } = this;
    const { segments, cursor } = this.#log;
    return { name, depth, bytes, inFlight: this.#deliveries.inFlight, segments, cursor };
  }

  /**
   * Adds a message at the end. Resolves when it is as safe as `durability` promises; concurrent puts share a write and a
   * sync.
   *
   * @param data - must not be changed before the promise has settled.
   * @param options - a signal cancels a put that waits for capacity: nothing was written then. It has no effect on a put
   * that is being written, whose outcome would be unknown.
   * @throws EscapementError `ERR_MESSAGE_SIZE`, `ERR_QUEUE_FULL`, `ERR_QUEUE_CLOSED` - nothing was written.
   * `ERR_QUEUE_IO` - the file system has failed; the message is not in the queue.
   */
  put(data: Uint8Array, options?: SignalOptions): Promise<void> {
    try {
      this.#requirePut(data);
      const signal = options === undefined ? undefined : signalOf('DiskQueue.put', options);
      signal?.throwIfAborted();
      return this.#capacity.take(data.length) ? this.#put(data) : this.#putWhenFits(data, signal);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it is one
      return Promise.reject(error);
    }
  }

  /** The same as `put`, but without the limit `maxBytesTotal`: for `OverflowQueue.close`, which must not lose messages. */
  async putBeyondLimit(data: Uint8Array): Promise<void> {
    this.#requirePut(data);
    this.#capacity.exceed(data.length);
    await this.#put(data);
  }

  /** Throws if `put` would reject a message of this type or size. */
  requireMessage(data: Uint8Array): void {
    requireData(data);
    const { minMessageSize, maxMessageSize } = this.#options;
    if (data.length >= minMessageSize && data.length <= maxMessageSize) return;
    const range = `${minMessageSize} to ${maxMessageSize} bytes`;
    throw this.#fail('ERR_MESSAGE_SIZE', 'put', `takes messages of ${range}. Received ${data.length}`);
  }

  /**
   * Delivers the first message, or waits for one. Pending calls are served in order.
   *
   * @throws EscapementError `ERR_QUEUE_CLOSED`. `ERR_QUEUE_IO` - the file system has failed; the message stays.
   */
  async receive(options?: SignalOptions): Promise<Delivery> {
    const signal = options === undefined ? undefined : signalOf('DiskQueue.receive', options);
    signal?.throwIfAborted();
    this.#requireOpen('receive');
    return (await this.#deliveries.take(signal)) as Delivery;
  }

  /** Returns a copy of the message that would be delivered next, which stays; undefined if there is none. */
  async peek(): Promise<Uint8Array | undefined> {
    this.#requireOpen('peek');
    const message = await this.#deliveries.peek();
    return message === undefined ? undefined : Buffer.from(message.data);
  }

  /**
   * Resolves when everything that was put or acknowledged before is on the disk.
   *
   * @throws EscapementError `ERR_QUEUE_IO` - it is not; or it may not be, because an earlier sync has failed. The latter
   * lasts until the messages of that sync are acknowledged.
   */
  async flush(): Promise<void> {
    this.#requireOpen('flush');
    await this.#naming('flush', this.#syncs.flush());
  }

  /**
   * Drops every message, those in flight included. Durable when it resolves.
   *
   * @throws EscapementError `ERR_QUEUE_IO` - the file system has failed; the messages are dropped, but may be back after a
   * reopen.
   */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    const emptied = this.#alone(() =>
      this.#log.empty().finally(() => {
        this.#capacity.setUsed(this.#log.bytes + this.#puttingBytes);
      }),
    );
    await this.#naming('empty', emptied);
  }

  /**
   * Completes the puts that have begun, and syncs everything. Pending calls reject with `ERR_QUEUE_CLOSED`, and loops over
   * messages end. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end('close', () => this.#log.close());
    return this.#closing;
  }

  /** The same as `close`, and removes all files of the queue. */
  delete(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(this.#closedError('delete'));
    this.#closing = this.#end('delete', async () => {
      await this.#log.close().catch(() => undefined); // it fails on a full disk, which may be the reason to delete
      await ifThere(this.#log.remove(), undefined); // the folder may have been removed, and the files with it
    });
    return this.#closing;
  }

  /** Iterates over messages: each is acknowledged when the loop requests the next one. Ends when the queue is closed. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array, undefined, undefined> {
    return new MessageIterator((group) => this.#deliveries.take(undefined, group));
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      dataPath: this.#options.folder,
      ...{ depth: this.depth, bytes: this.bytes, durability: this.#options.durability },
      state: this.#closing === undefined ? 'open' : 'closed',
    }));
  }

  #requirePut(data: Uint8Array): void {
    this.#requireOpen('put');
    this.requireMessage(data);
  }

  #put(data: Uint8Array): Promise<void> {
    this.#puttingBytes += data.length;
    return this.#commits.put(data);
  }

  #putWhenFits(data: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const { whenFull, maxBytesTotal } = this.#options;
    if (whenFull === 'reject' || data.length > maxBytesTotal) {
      throw this.#fail(
        'ERR_QUEUE_FULL',
        'put',
        `has no capacity for ${data.length} more bytes: maxBytesTotal is ${maxBytesTotal}`,
      );
    }
    return this.#capacity.wait(data.length, () => this.#put(data), signal);
  }

  async #readLog(): Promise<StoredMessage[]> {
    try {
      return await this.#naming('receive', this.#log.read());
    } finally {
      this.#recount();
    }
  }

  /** Damage that was found takes no capacity. While messages are being put, the log may or may not count them. */
  #recount(): void {
    if (this.#puttingBytes === 0) this.#capacity.setUsed(this.#log.bytes);
  }

  #acked(message: StoredMessage): void {
    this.#log.acknowledge(message);
    this.#metrics?.acked();
    this.#capacity.release(message.data.length);
    this.#syncs.acked();
  }

  #alone(action: () => Promise<void>): Promise<void> {
    return this.#syncs.alone(() => this.#deliveries.alone(action));
  }

  async #end(operation: string, last: () => Promise<void>): Promise<void> {
    this.#deliveries.close(this.#closedError('receive'));
    this.#capacity.failAll(this.#closedError('put'));
    this.#syncs.stop();
    try {
      await this.#naming(operation, this.#alone(last));
    } finally {
      this.#metrics?.remove();
      await this.#lock.release();
    }
  }

  #requireOpen(operation: string): void {
    if (this.#closing !== undefined) throw this.#closedError(operation);
  }

  #closedError(operation: string): EscapementError {
    return this.#fail('ERR_QUEUE_CLOSED', operation, 'is closed');
  }

  /** Names the operation in an error of the file system. */
  async #naming<R>(operation: string, action: Promise<R>): Promise<R> {
    try {
      return await action;
    } catch (error) {
      throw asIoError(error, this.name, operation);
    }
  }

  #fail(code: EscapementErrorCode, operation: string, message: string): EscapementError {
    return new EscapementError(code, `queue '${this.name}' ${message}`, { op: `DiskQueue.${operation}` });
  }
}

const EMPTY = { depth: 0, bytes: 0 };

/** Wraps an error of the file system or of the names in it; returns other errors as they are. */
function asIoError(error: unknown, queue: string, operation: string): unknown {
  if (!isSystemError(error) && !(error instanceof NoNumberLeft)) return error;
  return new EscapementError('ERR_QUEUE_IO', `queue '${queue}': ${error.message}`, {
    op: `DiskQueue.${operation}`,
    cause: error,
  });
}
