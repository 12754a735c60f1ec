/** Which requests complete when: a heap, as Kafka's harness has its `DelayQueue`. */
import TinyQueue from 'tinyqueue';
import type { HarnessRequest } from './harness-purgatories.ts';

class Scheduled {
  declare readonly atMs: number;
  declare readonly request: HarnessRequest;
  declare readonly key: string;

  constructor(request: HarnessRequest, key: string) {
    this.atMs = request.completesAtMs;
    this.request = request;
    this.key = key;
  }
}

export class CompletionQueue {
  readonly #queue = new TinyQueue<Scheduled>([], (a, b) => a.atMs - b.atMs);

  /** @param key - one of the request's. */
  add(request: HarnessRequest, key: string): void {
    this.#queue.push(new Scheduled(request, key));
  }

  /** When the first of them completes; `Infinity` if there is none. */
  get nextAtMs(): number {
    return this.#queue.peek()?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Takes all that complete until `nowMs`, earliest first. */
  deliver(nowMs: number, complete: (request: HarnessRequest, key: string) => void): void {
    for (let next = this.#queue.peek(); next !== undefined && next.atMs <= nowMs; next = this.#queue.peek()) {
      this.#queue.pop();
      complete(next.request, next.key);
    }
  }
}
