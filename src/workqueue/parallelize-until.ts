import {
  isAbortError,
  isThenable,
  requireFunction,
  requireIntegerAtLeast,
  requireSignal,
} from '../core/validate.ts';
import { TurnBudget } from '../core/own-turn.ts';
import { guarded } from '../core/report-uncaught.ts';
import { integer, readOptions, type OptionTable } from '../core/options.ts';
import type { SignalOptions } from '../core/signal-options.ts';

/** Options of {@link parallelizeUntil}. */
export interface ParallelizeOptions extends SignalOptions {
  /** Number of pieces that a worker takes at once, and runs in order: an integer of at least 1. @default 1 */
  readonly chunkSize?: number | undefined;
  /** No piece is started after it is aborted. @default never */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called before the promise rejects, with the pieces that were not run: at least one, in ascending order. What it throws is an uncaught
   * exception.
   */
  readonly onNotRun?: ((pieces: number[]) => void) | undefined;
}

const OPTIONS = {
  signal: [requireSignal, undefined],
  chunkSize: [integer(1), 1],
  onNotRun: [requireFunction, undefined],
} satisfies OptionTable<ParallelizeOptions>;

/**
 * Runs the pieces 0 … `pieces - 1`, each once, with several workers at once.
 *
 * After the first error no new piece starts; running ones are awaited. After client-go's function of this name, which reports
 * neither errors nor the pieces that were not run.
 *
 * @param workers - an integer of at least 1. Pieces that return no promise run one after the other all the same.
 * @param run - runs one piece; a promise that it returns is awaited.
 * @returns a promise that rejects with the error of a piece, or with the reason of the signal if it was aborted and a piece was not run
 * or has failed; with an `AggregateError` if there are several. Errors that are the reason or an `AbortError` count as the abort.
 */
export async function parallelizeUntil(
  workers: number,
  pieces: number,
  run: (piece: number) => unknown,
  options: ParallelizeOptions = {},
): Promise<void> {
  requireIntegerAtLeast('workers', 1, workers);
  requireIntegerAtLeast('pieces', 0, pieces);
  requireFunction('run', run);
  const { signal, chunkSize, onNotRun } = readOptions('parallelizeUntil', options, OPTIONS);
  await new PieceRun(pieces, chunkSize, run, signal).finish(workers, onNotRun);
}

/** The pieces from `first` to before `end`: a list of them may be too long for an array. */
interface Span {
  readonly first: number;
  readonly end: number;
}

/** The pieces of one call: each worker takes the next chunk. */
class PieceRun {
  readonly #pieces: number;
  readonly #chunkSize: number;
  readonly #run: (piece: number) => unknown;
  readonly #signal: AbortSignal | undefined;
  readonly #budget = new TurnBudget();
  readonly #errors: unknown[] = [];
  /** The rests of chunks that were taken and not completed. */
  readonly #leftOver: Span[] = [];
  #next = 0;

  constructor(
    pieces: number,
    chunkSize: number,
    run: (piece: number) => unknown,
    signal: AbortSignal | undefined,
  ) {
    this.#pieces = pieces;
    this.#chunkSize = chunkSize;
    this.#run = run;
    this.#signal = signal;
  }

  async finish(workers: number, onNotRun: ((pieces: number[]) => void) | undefined): Promise<void> {
    const chunks = Math.ceil(this.#pieces / this.#chunkSize);
    await Promise.all(Array.from({ length: Math.min(workers, chunks) }, () => this.#work()));
    const isIncomplete = this.#next < this.#pieces || this.#leftOver.length > 0;
    if (isIncomplete && onNotRun !== undefined) {
      guarded(() => {
        onNotRun(this.#notRun());
      });
    }
    this.#throwErrors(isIncomplete);
  }

  get #mustStop(): boolean {
    return this.#errors.length > 0 || this.#signal?.aborted === true;
  }

  async #work(): Promise<void> {
    while (this.#next < this.#pieces && !this.#mustStop) {
      const first = this.#next;
      this.#next = Math.min(first + this.#chunkSize, this.#pieces);
      await this.#chunk(first, this.#next);
    }
  }

  async #chunk(first: number, end: number): Promise<void> {
    for (let piece = first; piece < end; piece++) {
      if (this.#mustStop) {
        this.#leftOver.push({ first: piece, end });
        return;
      }
      try {
        const result = this.#run(piece);
        if (isThenable(result)) await result;
      } catch (error) {
        this.#errors.push(error);
      }
      if (this.#budget.spend()) await this.#budget.next();
    }
  }

  #notRun(): number[] {
    const leftOver = this.#leftOver.sort((a, b) => a.first - b.first);
    return [...leftOver, { first: this.#next, end: this.#pieces }].flatMap(piecesOf);
  }

  /** After an abort, errors of pieces that are consequences of it are left out. */
  #throwErrors(isIncomplete: boolean): void {
    const signal = this.#signal;
    const isAborted = signal?.aborted === true && (isIncomplete || this.#errors.length > 0);
    const reason: unknown = signal?.reason;
    const failures = isAborted
      ? this.#errors.filter((error) => error !== reason && !isAbortError(error))
      : this.#errors;
    const errors = isAborted ? [reason, ...failures] : failures;
    if (errors.length === 1) throw errors[0];
    if (errors.length === 0) return;
    const failed = failures.length === 1 ? 'a piece has failed' : `${failures.length} pieces have failed`;
    throw new AggregateError(errors, isAborted ? `aborted, and ${failed}` : failed);
  }
}

function piecesOf({ first, end }: Span): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i);
}
