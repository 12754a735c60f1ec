import { addAbortSignal, type Readable } from 'node:stream';
import { EscapementError } from 'escapement';
import type { DiskQueue } from 'escapement/diskqueue';
import { LineSplitter } from './line-splitter.ts';
import type { Progress } from './progress.ts';

/** Longer lines become several. */
export const MAX_LINE_BYTES = 64 * 1024;

export interface IntakeOptions {
  readonly queue: DiskQueue;
  readonly progress: Progress;
  /** Told how many lines of the input are in the spool, each time there are more. */
  readonly onTaken: (lines: number) => void;
}

/**
 * Puts lines into the spool.
 *
 * A piece of the input is put at once, so that its lines share a sync; the next one is read when all of it is there. So
 * a disk that is slow, or a spool that is full, holds the reading up, and the pipe holds up who writes into it.
 */
export class Intake {
  /** Lines that were read and did not get in before the spool was closed. */
  leftOut = 0;
  readonly #options: IntakeOptions;
  readonly #splitter = new LineSplitter(MAX_LINE_BYTES);

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Resolves at the end of the input, or when the signal fires: then it reads no more, and half a line is dropped. */
  async run(input: Readable, signal: AbortSignal): Promise<void> {
    try {
      for await (const piece of addAbortSignal(signal, input))
        await this.#put(this.#splitter.push(piece as Buffer));
      await this.#put(this.#splitter.end());
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #put(lines: readonly Buffer[]): Promise<void> {
    const { queue, progress, onTaken } = this.#options;
    const results = await Promise.allSettled(lines.map((line) => queue.put(line)));
    const failures = results
      .filter((result) => result.status === 'rejected')
      .map(({ reason }) => reason as unknown);
    progress.taken += lines.length - failures.length;
    this.leftOut += failures.filter(isClosed).length;
    if (failures.length > 0) throw failures.find((error) => !isClosed(error)) ?? failures[0];
    onTaken(this.#splitter.completed);
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof EscapementError && error.code === 'ERR_QUEUE_CLOSED';
}
