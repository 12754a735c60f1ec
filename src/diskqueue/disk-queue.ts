import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, illegalConstructor, type EscapementErrorCode } from '../core/errors.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { AckSaver } from './ack-saver.ts';
import type { BackendQueue, Delivery } from './backend-queue.ts';
import { CommitLoop } from '../log/commit-loop.ts';
import { DiskQueueMetrics, type DiskQueueSizes } from './disk-queue-metrics.ts';
import {
  resolveDiskQueueOptions,
  type DiskQueueOptions,
  type ResolvedDiskQueueOptions,
} from './disk-queue-options.ts';
import { HandOuts, type Receivers } from './hand-outs.ts';
import { MessageIterator } from './message-iterator.ts';
import type { CorruptionEvent, MessageLog, StoredMessage } from './message-log.ts';
import { openLog } from './open-log.ts';
import { QueueLock } from './queue-lock.ts';
import { requireData } from './require-data.ts';
import { Room } from './room.ts';
import { SyncSchedule } from '../log/sync-schedule.ts';

/**
 * A queue of messages on a local disk: first in, first out, and it survives a crash.
 *
 *      put ──► commit loop ──► log ──► hand-outs ──► receive
 *              (group commit)   │           │
 *                               │◄── acks ──┘          whoever has a message and dies has not acknowledged it:
 *                             disk                     it comes again
 *
 * After nsqio's go-diskqueue, without its losses; docs/diskqueue.md says what is guaranteed when.
 *
 * @example
 * ```ts
 * const queue = await DiskQueue.open({ name: 'spool', dataPath: '/var/spool/app' });
 * await queue.put(Buffer.from('hello')); // on the disk
 * for await (const message of queue) await forward(message); // acknowledged when the loop asks for the next one
 * ```
 */
export class DiskQueue implements BackendQueue {
  /** For metrics and errors. */
  readonly name: string;
  readonly #options: ResolvedDiskQueueOptions;
  readonly #lock: QueueLock;
  readonly #log: MessageLog;
  readonly #commits: CommitLoop;
  readonly #handOuts: HandOuts;
  readonly #acks: AckSaver;
  readonly #syncs: SyncSchedule;
  readonly #room: Room;
  readonly #metrics: DiskQueueMetrics | undefined;
  #committingSinceMs = 0;
  /** Of messages that are being put. */
  #puttingBytes = 0;
  #closing: Promise<void> | undefined;

  private constructor(
    options: ResolvedDiskQueueOptions,
    lock: QueueLock,
    log: MessageLog,
    metrics: DiskQueueMetrics | undefined,
  ) {
    if (!(lock instanceof QueueLock)) throw illegalConstructor('DiskQueue', 'await DiskQueue.open({ … })');
    this.#metrics = metrics;
    this.name = options.name;
    this.#options = options;
    this.#lock = lock;
    this.#log = log;
    const { durability, clock, syncEvery, syncTimeoutMs, maxBytesTotal } = options;
    this.#room = new Room(maxBytesTotal, log.bytes);
    this.#syncs = new SyncSchedule(clock, syncEvery, syncTimeoutMs, () => {
      this.#syncInBackground();
    });
    this.#acks = new AckSaver(log, () => {
      this.#syncs.retry(); // they are kept, and written with the next save
    });
    this.#handOuts = new HandOuts(log, {
      acked: (message) => {
        this.#acked(message);
      },
      read: () => {
        this.#room.leave(this.#log.takeWrittenOff());
      },
      failed: (error) => this.#ioError('receive', error),
    });
    this.#commits = new CommitLoop(log, durability === 'always', {
      committing: () => {
        if (metrics !== undefined) this.#committingSinceMs = metrics.now();
      },
      committed: (messages, bytes) => {
        metrics?.committed(messages, this.#committingSinceMs);
        this.#puttingBytes -= bytes;
        if (durability === 'interval') this.#syncs.count(messages);
        this.#handOuts.committed();
      },
      refused: (data, error) => {
        this.#puttingBytes -= data.length;
        this.#room.leave(data.length);
        return this.#ioError('put', error);
      },
    });
  }

  /**
   * Opens a queue, or makes one. It has one owner at a time.
   *
   * What a crash has left is put in order. Damage is stepped over and reported to `onCorruption`; so it may be when
   * messages are received.
   *
   * @throws EscapementError `ERR_QUEUE_LOCKED` - it is open, here or elsewhere. `ERR_QUEUE_IO` - the disk has refused:
   * nothing has changed.
   * @throws TypeError `ERR_INVALID_ARG_VALUE` - an option; or the folder has files of that queue in the other format.
   */
  static async open(options: DiskQueueOptions): Promise<DiskQueue> {
    const resolved = resolveDiskQueueOptions(options);
    const { files, folder, name } = resolved;
    let lock: QueueLock | undefined;
    let log: MessageLog | undefined;
    const metrics = metricsOf(resolved, () => log ?? { depth: 0, bytes: 0 });
    try {
      await files.makeFolder(folder);
      lock = await QueueLock.acquire(folder, name);
      log = await openLog(resolved, (event) => {
        metrics?.damaged(event);
        notify(resolved.onCorruption, event);
      });
      return new DiskQueue(resolved, lock, log, metrics);
    } catch (error) {
      metrics?.remove();
      await lock?.release();
      throw asIoError(error, name, 'open');
    }
  }

  /** Messages that were put and are not acknowledged, those handed out included. O(1). */
  get depth(): number {
    return this.#log.depth;
  }

  /** Their bytes, without what the files need besides. `maxBytesTotal` is the limit, and counts those being put too. O(1). */
  get bytes(): number {
    return this.#log.bytes;
  }

  /**
   * Puts a message behind all others. Resolves when it is as safe as `durability` says; puts that wait together share
   * a write, and a sync.
   *
   * @param data - not changed, and not to be changed before the promise has settled.
   * @param options - a signal calls back a put that waits for room: nothing was written then. One that is being written
   * goes on, because nobody could say any more whether the message is there.
   * @throws EscapementError `ERR_MESSAGE_SIZE`, `ERR_QUEUE_FULL`, `ERR_QUEUE_CLOSED` - nothing was written.
   * `ERR_QUEUE_IO` - the disk has refused: the message is not in the queue.
   */
  put(data: Uint8Array, options?: SignalOptions): Promise<void> {
    return this.#checked(data, () => {
      const signal = options === undefined ? undefined : signalOf('DiskQueue.put', options);
      signal?.throwIfAborted();
      if (this.#room.enter(data.length)) return this.#put(data);
      return this.#putWhenRoom(data, signal);
    });
  }

  /** As `put`, but `maxBytesTotal` does not hold it back: `OverflowQueue` has it when it closes, and nothing may be lost. */
  putBeyondLimit(data: Uint8Array): Promise<void> {
    return this.#checked(data, () => {
      this.#room.exceed(data.length);
      return this.#put(data);
    });
  }

  /** Throws what `put` would reject with for a message of that type or size. */
  requireMessage(data: Uint8Array): void {
    requireData(data);
    const { minMessageSize, maxMessageSize } = this.#options;
    if (data.length >= minMessageSize && data.length <= maxMessageSize) return;
    const range = `from ${minMessageSize} to ${maxMessageSize} bytes`;
    throw this.#fail('ERR_MESSAGE_SIZE', 'put', `takes messages of ${range}. Received ${data.length}`);
  }

  /**
   * Hands out the first message, or waits for one. Callers are served in the order they came.
   *
   * @throws EscapementError `ERR_QUEUE_CLOSED`. `ERR_QUEUE_IO` - the disk has refused: the message stays.
   */
  async receive(options: SignalOptions = {}): Promise<Delivery> {
    const signal = signalOf('DiskQueue.receive', options);
    signal?.throwIfAborted();
    this.#requireOpen('receive');
    return (await this.#handOuts.take(signal)) as Delivery;
  }

  /** A copy of the message that would be handed out next; undefined if there is none. It stays. */
  async peek(): Promise<Uint8Array | undefined> {
    this.#requireOpen('peek');
    const message = await this.#handOuts.peek();
    return message === undefined ? undefined : Buffer.from(message.data);
  }

  /**
   * Resolves when everything that was put or acknowledged before is on the disk.
   *
   * @throws EscapementError `ERR_QUEUE_IO` - it is not; or may not be, because an earlier sync has failed: until what that
   * was to bring there is acknowledged.
   */
  async flush(): Promise<void> {
    this.#requireOpen('flush');
    try {
      await this.#sync();
    } catch (error) {
      throw this.#ioError('flush', error);
    }
  }

  /**
   * Drops every message, those that were handed out included. Durable when it resolves.
   *
   * @throws EscapementError `ERR_QUEUE_IO` - the disk has refused: they are gone here, but may come again after a reopen.
   */
  async empty(): Promise<void> {
    this.#requireOpen('empty');
    try {
      await this.#alone(() => this.#handOuts.reset(() => this.#empty()));
    } catch (error) {
      throw this.#ioError('empty', error);
    }
  }

  /**
   * Puts that have begun are finished; everything is brought to the disk; whoever waits is sent away with
   * `ERR_QUEUE_CLOSED`, and loops over messages end. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#end(() => this.#log.close());
    return this.#closing;
  }

  /** As `close`, and removes every file of the queue. */
  delete(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(this.#closedError('delete'));
    this.#closing = this.#end(async () => {
      await this.#log.close().catch(() => undefined); // a disk that is full refuses that, and is why somebody deletes
      await this.#log.remove();
    });
    return this.#closing;
  }

  /** Messages, one after the other: each is acknowledged when the loop asks for the next one. Ends with the queue. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array, undefined, undefined> {
    return new MessageIterator((group: Receivers) => this.#handOuts.take(undefined, group));
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

  /** What is wrong with a message is a rejection. */
  #checked(data: Uint8Array, put: () => Promise<void>): Promise<void> {
    try {
      this.#requireOpen('put');
      this.requireMessage(data);
      return put();
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it is one
      return Promise.reject(error);
    }
  }

  #put(data: Uint8Array): Promise<void> {
    this.#puttingBytes += data.length;
    return this.#commits.put(data);
  }

  #putWhenRoom(data: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
    const { whenFull, maxBytesTotal } = this.#options;
    if (whenFull === 'reject' || data.length > maxBytesTotal) {
      throw this.#fail(
        'ERR_QUEUE_FULL',
        'put',
        `has no room for ${data.length} bytes more: ${maxBytesTotal} is the limit`,
      );
    }
    return this.#room.wait(data.length, () => this.#put(data), signal);
  }

  #acked(message: StoredMessage): void {
    this.#log.acknowledge(message);
    this.#metrics?.acked();
    this.#room.leave(message.data.length);
    this.#acks.request();
    this.#syncs.count(1);
  }

  async #empty(): Promise<void> {
    try {
      await this.#log.empty();
    } finally {
      this.#room.setUsed(this.#log.bytes + this.#puttingBytes);
    }
  }

  #syncInBackground(): void {
    if (this.#options.durability === 'interval') {
      this.#sync().catch(() => undefined); // the log remembers what may not be on the disk, and says so to who asks
    } else {
      this.#acks
        .run(() => this.#log.saveAcks(true))
        .catch(() => {
          this.#syncs.retry();
        });
    }
  }

  /** Brings to the disk what was put and acknowledged before. What comes meanwhile counts for the next time. */
  async #sync(): Promise<void> {
    let saving = Promise.resolve();
    try {
      await this.#commits.run(async () => {
        this.#syncs.reset();
        await this.#log.sync();
        saving = this.#acks.run(() => this.#log.saveAcks(true)); // in line before a close that comes behind this step
      });
      await saving;
    } catch (error) {
      this.#syncs.retry();
      throw error;
    }
  }

  /** Behind everything that was begun, and while nothing else is. */
  #alone(action: () => Promise<void>): Promise<void> {
    return this.#commits.run(() => this.#acks.run(action));
  }

  async #end(last: () => Promise<void>): Promise<void> {
    this.#handOuts.close(this.#closedError('receive'));
    this.#room.failAll(this.#closedError('put'));
    this.#syncs.stop();
    this.#acks.stop();
    try {
      await this.#alone(() => this.#handOuts.reset(last));
    } catch (error) {
      throw this.#ioError('close', error);
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

  #ioError(operation: string, error: unknown): unknown {
    return asIoError(error, this.name, operation);
  }

  #fail(code: EscapementErrorCode, operation: string, message: string): EscapementError {
    return new EscapementError(code, `queue '${this.name}' ${message}`, { op: `DiskQueue.${operation}` });
  }
}

function metricsOf(
  { metrics, clock, name }: ResolvedDiskQueueOptions,
  sizes: () => DiskQueueSizes,
): DiskQueueMetrics | undefined {
  return metrics === undefined ? undefined : new DiskQueueMetrics(metrics, clock, name, sizes);
}

/** An error of the file system, as this package says it; its own errors stay what they are. */
function asIoError(error: unknown, queue: string, operation: string): unknown {
  const isForeign = error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
  if (!isForeign) return error;
  return new EscapementError('ERR_QUEUE_IO', `queue '${queue}': ${error.message}`, {
    op: `DiskQueue.${operation}`,
    cause: error,
  });
}

/** Called in the middle of reading, which an error of the handler must not interrupt. */
function notify(onCorruption: (event: CorruptionEvent) => void, event: CorruptionEvent): void {
  try {
    onCorruption(event);
  } catch (error) {
    reportUncaught(error);
  }
}
