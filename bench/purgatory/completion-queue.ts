/** Which requests complete when: a heap, as Kafka's harness has its `DelayQueue`. */
import TinyQueue from 'tinyqueue';
import type { HarnessRequest } from './harness-purgatories.ts';

class Scheduled {
  declare readonly atMs: number;
  declare readonly request: HarnessRequest;
  declare readonly key: string;
  declare readonly expiresAtMs: number;

  constructor(request: HarnessRequest, key: string, expiresAtMs: number) {
    this.atMs = request.completesAtMs;
    this.request = request;
    this.key = key;
    this.expiresAtMs = expiresAtMs;
  }
}

export class CompletionQueue {
  readonly #queue = new TinyQueue<Scheduled>([], (a, b) => a.atMs - b.atMs);

  /** How many of those delivered had expired, because they were delivered after their timeout. */
  late = 0;

  /** @param key - one of the request's. */
  add(request: HarnessRequest, key: string, expiresAtMs: number): void {
    this.#queue.push(new Scheduled(request, key, expiresAtMs));
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
      if (next.request.hasExpired && next.expiresAtMs <= nowMs) this.late++;
    }
  }
}
