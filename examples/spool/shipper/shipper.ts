import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { DiskQueue, type Durability } from 'escapement/diskqueue';
import { CollectorClient } from './collector-client.ts';
import { Forwarder } from './forwarder.ts';
import { Gauges } from './gauges.ts';
import { Intake } from './intake.ts';
import type { Progress, Status } from './progress.ts';
import { RejectedFile } from './rejected-file.ts';
import type { BatchLimits } from './take-batch.ts';

export interface ShipperOptions {
  /** Where the spool is, and the file of lines that were refused. */
  readonly directory: string;
  readonly url: string;
  readonly durability: Durability;
  /** Of lines in the spool. When it is full, no more is read. */
  readonly maxBytes: number;
  /** Lines of a request. */
  readonly batchLines: number;
  /** How long it goes on forwarding when the input has ended. */
  readonly drainMs: number;
  readonly maxRetryMs: number;
  readonly say: (text: string) => void;
  /** Told how many lines of the input are in the spool. */
  readonly onTaken: (lines: number) => void;
}

/** What is left when a shipper has stopped. */
export interface Leftovers {
  /** Lines in the spool: the next start sends them. */
  readonly kept: number;
  /** Lines that were read, and for which there was no room. */
  readonly leftOut: number;
}

/** The names of the files in the directory begin so. */
export const SPOOL_NAME = 'lines';
export const REJECTED_FILE = 'rejected.log';
const BATCH: Omit<BatchLimits, 'lines'> = { bytes: 1024 * 1024, lingerMs: 20 };

/**
 * Lines from a stream, by way of a queue on the disk, to a collector.
 *
 *      input ──► intake ──► DiskQueue ──► forwarder ──► HTTP
 *                            put           receive
 *                            waits if full ack when it is there
 */
export class Shipper {
  readonly #options: ShipperOptions;
  readonly #queue: DiskQueue;
  readonly #gauges: Gauges;
  readonly #progress: Progress = { taken: 0, forwarded: 0, retries: 0, rejected: 0 };
  readonly #intake: Intake;
  readonly #forwarder: Forwarder;
  readonly #stop = new AbortController();
  #isInputOver = false;

  private constructor(options: ShipperOptions, queue: DiskQueue, gauges: Gauges) {
    const { directory, url, batchLines, maxRetryMs, say, onTaken } = options;
    this.#options = options;
    this.#queue = queue;
    this.#gauges = gauges;
    this.#intake = new Intake({ queue, progress: this.#progress, onTaken });
    this.#forwarder = new Forwarder({
      queue,
      collector: new CollectorClient(url),
      rejected: new RejectedFile(join(directory, REJECTED_FILE)),
      limits: { ...BATCH, lines: batchLines },
      maxRetryMs,
      progress: this.#progress,
      say,
      onSettled: () => {
        this.#stopIfDone();
      },
    });
  }

  /** @throws EscapementError `ERR_QUEUE_LOCKED` - another shipper has the spool. `ERR_QUEUE_IO`. */
  static async open(options: ShipperOptions): Promise<Shipper> {
    const { directory, durability, maxBytes, say } = options;
    const metrics = new Gauges();
    const queue = await DiskQueue.open({
      name: SPOOL_NAME,
      dataPath: directory,
      durability,
      maxBytesTotal: maxBytes,
      whenFull: 'wait',
      onCorruption: ({ file, bytes, reason }) => {
        say(`${file}: ${bytes} bytes are damaged and were skipped: ${reason}`);
      },
      metrics,
    });
    return new Shipper(options, queue, metrics);
  }

  get status(): Status {
    const { depth } = this.#queue;
    return { pid: process.pid, depth, bytes: this.#gauges.read('diskqueue_bytes'), ...this.#progress };
  }

  /** Ships until the input has ended and all is forwarded, or for `drainMs` more; or until `stop`. Once. */
  async run(input: Readable): Promise<Leftovers> {
    const taking = this.#takeAll(input);
    taking.catch(this.stop); // a disk that refuses: it is told of below, when the rest is in order
    try {
      await this.#forwarder.run(this.#stop.signal);
    } finally {
      this.stop();
      await this.#queue.close(); // sends away what waits for room
    }
    await taking;
    return { kept: this.#queue.depth, leftOut: this.#intake.leftOut };
  }

  /** Reads no more, lets the request that is under way get its answer, and keeps the rest. */
  readonly stop = (): void => {
    this.#stop.abort();
  };

  async #takeAll(input: Readable): Promise<void> {
    await this.#intake.run(input, this.#stop.signal);
    this.#isInputOver = true;
    this.#stopIfDone();
    if (this.#stop.signal.aborted) return;
    const timer = setTimeout(this.stop, this.#options.drainMs);
    this.#stop.signal.addEventListener('abort', () => {
      clearTimeout(timer);
    });
  }

  #stopIfDone(): void {
    if (this.#isInputOver && this.#queue.depth === 0) this.stop();
  }
}
