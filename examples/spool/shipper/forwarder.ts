import { setTimeout as sleep } from 'node:timers/promises';
import { ItemExponentialFailureRateLimiter, WithJitterRateLimiter } from 'escapement';
import type { Delivery, DiskQueue } from 'escapement/diskqueue';
import type { Answer, CollectorClient } from './collector-client.ts';
import type { Progress } from './progress.ts';
import type { RejectedFile } from './rejected-file.ts';
import { takeBatch, type BatchLimits } from './take-batch.ts';

export interface ForwarderOptions {
  readonly queue: DiskQueue;
  readonly collector: CollectorClient;
  readonly rejected: RejectedFile;
  readonly limits: BatchLimits;
  /** The longest time between two attempts. */
  readonly maxRetryMs: number;
  readonly progress: Progress;
  readonly say: (text: string) => void;
  /** Lines were acknowledged. */
  readonly onSettled: () => void;
}

/** Before the second attempt; doubled for each other one. */
const FIRST_RETRY_MS = 50;
/** What the limiter counts failures of: there is one collector. */
const COLLECTOR = 'collector';

/**
 * Takes lines from the spool and sends them, one request at a time, so that they arrive in order.
 *
 *      take a batch ──► post ──► accepted ──────────► ack
 *                        ▲  └──► refused ───────────► halve it, until it is one line: set that aside, ack
 *                        └─ wait ◄── anything else
 *
 * A line is acknowledged when it is somewhere else, and not before.
 */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #delays: WithJitterRateLimiter<string>;
  /** Why the last attempt has failed. */
  #trouble: string | undefined;

  constructor(options: ForwarderOptions) {
    this.#options = options;
    this.#delays = new WithJitterRateLimiter(
      new ItemExponentialFailureRateLimiter({
        baseDelayMs: FIRST_RETRY_MS,
        maxDelayMs: Math.max(options.maxRetryMs, FIRST_RETRY_MS),
      }),
    );
  }

  /** Forwards until the signal fires. The request that is under way gets its answer; what is not acknowledged stays. */
  async run(signal: AbortSignal): Promise<void> {
    const { queue, limits } = this.#options;
    try {
      for (;;) await this.#forward(await takeBatch(queue, limits, signal), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #forward(batch: readonly Delivery[], signal: AbortSignal): Promise<void> {
    const answer = await this.#post(batch, signal);
    if (answer.kind === 'accepted') this.#settle(batch, 'forwarded');
    else if (batch.length === 1) await this.#setAside(batch, answer.status);
    else for (const half of halvesOf(batch)) await this.#forward(half, signal);
  }

  /** Posts it again and again, until there is an answer that says what becomes of it. */
  async #post(
    batch: readonly Delivery[],
    signal: AbortSignal,
  ): Promise<Exclude<Answer, { kind: 'trouble' }>> {
    const lines = batch.map(({ data }) => data);
    for (;;) {
      signal.throwIfAborted();
      const answer = await this.#options.collector.post(lines);
      if (answer.kind !== 'trouble') {
        this.#noteRecovery();
        return answer;
      }
      this.#noteTrouble(answer.reason);
      await sleep(Math.max(this.#delays.when(COLLECTOR), answer.retryAfterMs), undefined, { signal });
    }
  }

  async #setAside(batch: readonly Delivery[], status: number): Promise<void> {
    const { rejected, say } = this.#options;
    for (const { data } of batch) await rejected.add(data);
    this.#settle(batch, 'rejected');
    say(`the collector refuses a line with ${status}: it is in ${rejected.path}`);
  }

  #settle(batch: readonly Delivery[], count: 'forwarded' | 'rejected'): void {
    for (const delivery of batch) delivery.ack();
    this.#options.progress[count] += batch.length;
    this.#options.onSettled();
  }

  /** Said once, and not at each attempt. */
  #noteTrouble(reason: string): void {
    this.#options.progress.retries++;
    if (reason !== this.#trouble) this.#options.say(`the collector does not take lines: ${reason}`);
    this.#trouble = reason;
  }

  #noteRecovery(): void {
    this.#delays.forget(COLLECTOR);
    if (this.#trouble !== undefined) this.#options.say('the collector takes lines again');
    this.#trouble = undefined;
  }
}

function halvesOf<T>(items: readonly T[]): readonly T[][] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
