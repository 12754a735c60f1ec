/**
 * Ships lines from a stream to a collector, by way of a queue on the disk.
 *
 *      input ──► put ──► DiskQueue ──► receive ──► POST ──► 2xx ────────────► ack
 *                waits if full                       ▲  └──► 400, 413, 422 ──► halve; a single line goes to rejected.log, ack
 *                                                    └─ wait ◄── anything else
 *
 * Each step lets go when the next one has the line: the producer when `put` has resolved, the queue when the collector has answered.
 * So a crash loses no line. It may repeat some: those that were posted, and whose acknowledgement was not written yet.
 */
import { setMaxListeners } from 'node:events';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ItemExponentialFailureRateLimiter, WithJitterRateLimiter } from 'escapement';
import { DiskQueue, type Delivery, type Durability } from 'escapement/diskqueue';

export interface ShipperOptions {
  /** Folder of the spool, and of rejected.log. */
  readonly directory: string;
  /** Address that lines are posted to. */
  readonly url: string;
  /** When a line counts as stored. */
  readonly durability: Durability;
  /** Bytes of lines in the spool. While it is full, no more is read. */
  readonly maxBytes: number;
  /** Lines of a request, at most. */
  readonly batchLines: number;
  /** How long the rest is forwarded after the end of the input. */
  readonly drainMs: number;
  /** Called with the number of lines of the input that are in the spool. */
  readonly onTaken: (lines: number) => void;
  readonly report: (text: string) => void;
}

/** Statuses about the lines. Others of 4xx are about the shipper (401, 404, 429): those must not cost a line. */
const REFUSALS = [400, 413, 415, 422];
const REQUEST_TIMEOUT_MS = 10_000;
const RETRY_DELAYS = { baseDelayMs: 50, maxDelayMs: 5_000 };
/** What the limiter counts failures of: there is one collector. */
const COLLECTOR = 'collector';

export class Shipper {
  /** Lines that the collector has accepted since the start. */
  forwarded = 0;
  readonly #options: ShipperOptions;
  readonly #queue: DiskQueue;
  readonly #retries = new WithJitterRateLimiter<string>(new ItemExponentialFailureRateLimiter(RETRY_DELAYS));
  /** Why the last request failed, if it did. */
  #trouble = '';
  /** Fires when there is nothing more to forward, or no time left for it. */
  readonly #end = new AbortController();
  #isInputOver = false;

  private constructor(options: ShipperOptions, queue: DiskQueue) {
    this.#options = options;
    this.#queue = queue;
  }

  /** @throws EscapementError `ERR_QUEUE_LOCKED` - another shipper has the spool. */
  static async open(options: ShipperOptions): Promise<Shipper> {
    const queue = await DiskQueue.open({
      name: 'lines',
      dataPath: options.directory,
      durability: options.durability,
      maxBytesTotal: options.maxBytes,
      whenFull: 'wait',
      onCorruption: ({ file, bytes, reason }) => {
        options.report(`${file}: skipped ${bytes} damaged bytes: ${reason}`);
      },
    });
    return new Shipper(options, queue);
  }

  /** Lines in the spool. */
  get depth(): number {
    return this.#queue.depth;
  }

  /** Ships until the input has ended and everything is forwarded, or until `stop` fires. What is left stays in the spool. */
  async run(input: Readable, stop: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stop, this.#end.signal]);
    setMaxListeners(0, signal); // every put that waits for capacity listens to it
    const taking = this.#takeAll(input, signal);
    taking.catch((error: unknown) => {
      this.#end.abort(error); // the disk refuses, or the pipe is broken
    });
    try {
      for (;;) await this.#forward(await this.#batch(signal), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await this.#queue.close();
    }
    await taking;
  }

  /** Puts all lines of a chunk at once, so that they share a sync. A slow disk or a full spool holds up the reading, and so the pipe. */
  async #takeAll(input: Readable, signal: AbortSignal): Promise<void> {
    let taken = 0;
    let rest = '';
    const put = async (lines: readonly string[]): Promise<void> => {
      await Promise.all(lines.map((line) => this.#queue.put(Buffer.from(line), { signal })));
      taken += lines.length;
      this.#options.onTaken(taken);
    };
    try {
      for await (const chunk of addAbortSignal(signal, input.setEncoding('utf8'))) {
        const lines = (rest + (chunk as string)).split('\n');
        rest = lines.pop() ?? '';
        await put(lines);
      }
      if (rest !== '') await put([rest]);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#isInputOver = true;
    this.#endIfDone();
    setTimeout(() => {
      this.#end.abort();
    }, this.#options.drainMs).unref();
  }

  /** Waits for a line, and takes those that are there with it. This is the only receiver, so `depth` says how many there are. */
  async #batch(signal: AbortSignal): Promise<Delivery[]> {
    const batch = [await this.#queue.receive({ signal })];
    const count = Math.min(this.#queue.depth, this.#options.batchLines);
    while (batch.length < count) batch.push(await this.#queue.receive({ signal }));
    return batch;
  }

  /** Forwards a batch before the next one, so lines arrive in order. */
  async #forward(batch: readonly Delivery[], signal: AbortSignal): Promise<void> {
    const body = batch.map(({ data }) => `${Buffer.from(data).toString()}\n`).join('');
    const status = await this.#post(body, signal);
    const isRefused = REFUSALS.includes(status);
    if (isRefused && batch.length > 1) {
      const middle = batch.length >> 1;
      for (const half of [batch.slice(0, middle), batch.slice(middle)]) await this.#forward(half, signal);
      return;
    }
    if (isRefused) await this.#setAside(body, status);
    else this.forwarded += batch.length;
    for (const delivery of batch) delivery.ack();
    this.#endIfDone();
  }

  /** Posts until there is an answer that settles the matter: 2xx, or a refusal. */
  async #post(body: string, signal: AbortSignal): Promise<number> {
    for (;;) {
      signal.throwIfAborted();
      const { status, retryAfterMs, trouble } = await attempt(this.#options.url, body);
      if (trouble !== this.#trouble) this.#options.report(trouble || 'the collector accepts lines again');
      this.#trouble = trouble;
      if (trouble === '') {
        this.#retries.forget(COLLECTOR);
        return status;
      }
      await sleep(Math.max(this.#retries.when(COLLECTOR), retryAfterMs), undefined, { signal });
    }
  }

  async #setAside(line: string, status: number): Promise<void> {
    const path = join(this.#options.directory, 'rejected.log');
    await appendFile(path, line, { flush: true });
    this.#options.report(`the collector refuses a line with ${status}: it is in ${path}`);
  }

  #endIfDone(): void {
    if (this.#isInputOver && this.#queue.depth === 0) this.#end.abort();
  }
}

interface Attempt {
  readonly status: number;
  readonly retryAfterMs: number;
  /** Why it must be repeated; empty if it need not. */
  readonly trouble: string;
}

async function attempt(url: string, body: string): Promise<Attempt> {
  try {
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const response = await fetch(url, { method: 'POST', body, redirect: 'manual', signal });
    await response.arrayBuffer(); // only then can the connection serve the next request
    const { ok, status, headers } = response;
    const trouble = ok || REFUSALS.includes(status) ? '' : `the collector answers ${status}`;
    return { status, retryAfterMs: 1_000 * Number(headers.get('retry-after')) || 0, trouble };
  } catch (error) {
    const { message, cause } = error as Error;
    return {
      status: 0,
      retryAfterMs: 0,
      trouble: `no answer from the collector: ${codeOf(cause) ?? message}`,
    };
  }
}

function codeOf(cause: unknown): string | undefined {
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}
