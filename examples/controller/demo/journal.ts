import { DelayedOperationPurgatory } from 'escapement';
import type { News } from '../controller/news.ts';

/** What a worker did with a key, from its start to its end. */
export interface Attempt {
  readonly key: string;
  /** Failures before it. */
  readonly retries: number;
  /** Whether somebody asked for it since the attempt before; otherwise its delay was over. */
  readonly wasWanted: boolean;
  readonly startMs: number;
  endMs: number;
  /** Undefined while it lasts. */
  outcome: Outcome | undefined;
}

/** As in the news; the last failure of a key that is given up is `dropped`. */
export type Outcome = Extract<News, { kind: 'done' }>['result'] | 'failed' | 'dropped';

/** What the demonstration waits for comes much earlier. */
const TIMEOUT_MS = 20_000;

/** Writes down what a controller did, for the self-check: what it knows, it does not know from the queue. */
export class Journal {
  events = 0;
  readonly attempts: Attempt[] = [];
  /** Keys that were with two workers at once. */
  readonly overlaps: string[] = [];
  /** The most keys that were with workers at once. */
  mostInWork = 0;
  readonly #inWork = new Map<string, Attempt>();
  readonly #wanted = new Set<string>();
  readonly #purgatory = new DelayedOperationPurgatory<string>('journal');

  note(news: News): void {
    if (news.kind === 'event') this.events++;
    else if (news.kind === 'wanted') this.#wanted.add(news.key);
    else if (news.kind === 'started') this.#start(news.key, news.retries);
    else this.#end(news.key, news.kind === 'done' ? news.result : news.kind);
  }

  /** Waits for the end of an attempt that is or was in work after `sinceMs`. */
  async until(key: string, outcome: Outcome, sinceMs: number, signal: AbortSignal): Promise<Attempt> {
    const find = (): Attempt | undefined =>
      this.attempts.find(
        (attempt) => attempt.key === key && attempt.outcome === outcome && attempt.endMs > sinceMs,
      );
    return this.#purgatory.wait([key], find, { timeoutMs: TIMEOUT_MS, signal }).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new Error(`${key} was not ${outcome} within ${TIMEOUT_MS / 1_000} s`, { cause });
    });
  }

  close(): void {
    this.#purgatory.close();
  }

  #start(key: string, retries: number): void {
    if (this.#inWork.has(key)) this.overlaps.push(key);
    const startMs = performance.now();
    const wasWanted = this.#wanted.delete(key);
    const attempt = { key, retries, wasWanted, startMs, endMs: NaN, outcome: undefined };
    this.attempts.push(attempt);
    this.#inWork.set(key, attempt);
    this.mostInWork = Math.max(this.mostInWork, this.#inWork.size);
  }

  #end(key: string, outcome: Outcome): void {
    const attempt = this.#inWork.get(key) ?? this.#lastOf(key);
    if (attempt === undefined) return;
    attempt.endMs = performance.now();
    attempt.outcome = outcome;
    this.#inWork.delete(key);
    this.#purgatory.checkAndComplete(key);
  }

  /** That it is dropped is told after that it has failed. */
  #lastOf(key: string): Attempt | undefined {
    return this.attempts.findLast((attempt) => attempt.key === key);
  }
}
