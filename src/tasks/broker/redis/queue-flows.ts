import type { Clock, ClockTimeout } from '../../../core/clock.ts';

/** Queues that are remembered: more than a server serves. */
const MAX_KNOWN = 1_000;

/** Longest wait for a token, in milliseconds: servers poll anyway. */
const MAX_WAIT_MS = 3_600_000;

interface KnownFlow {
  readonly isOn: boolean;
  readonly readAtMs: number;
}

/**
 * The flow control of queues as it was last read: which have limits or keys, and when their next token comes. Other brokers set limits,
 * too: it is read again when it is old.
 */
export class QueueFlows {
  readonly #clock: Clock;
  readonly #exists: (queue: string) => Promise<boolean>;
  readonly #known = new Map<string, KnownFlow>();
  readonly #timers = new Map<string, ClockTimeout>();

  /** @param exists - reads whether a queue has limits or keys. */
  constructor(clock: Clock, exists: (queue: string) => Promise<boolean>) {
    this.#clock = clock;
    this.#exists = exists;
  }

  /** Whether a queue was flow controlled when that was last read, or set. */
  isOn(queue: string): boolean {
    return this.#known.get(queue)?.isOn === true;
  }

  /** Whether it was read, or set, less than `maxAgeMs` ago. */
  knows(queue: string, maxAgeMs: number): boolean {
    const known = this.#known.get(queue);
    return known !== undefined && this.#clock.now() - known.readAtMs < maxAgeMs;
  }

  set(queue: string, isOn: boolean): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(queue, { isOn, readAtMs: this.#clock.now() });
  }

  /** Reads whether a queue is flow controlled. */
  async read(queue: string): Promise<boolean> {
    const isOn = await this.#exists(queue);
    this.set(queue, isOn);
    return isOn;
  }

  /** Calls back when the next token of a queue comes. Replaces the call before. @param inMs - -1 for never. */
  awaitToken(queue: string, inMs: number, callback: () => void): void {
    this.#timers.get(queue)?.cancel();
    this.#timers.delete(queue);
    if (inMs < 0) return;
    const timer = this.#clock.setTimeout(
      () => {
        this.#timers.delete(queue);
        callback();
      },
      Math.min(inMs, MAX_WAIT_MS),
    );
    timer.unref();
    this.#timers.set(queue, timer);
  }

  /** Forgets a queue that was removed. */
  forget(queue: string): void {
    this.awaitToken(queue, -1, () => undefined);
    this.#known.delete(queue);
  }

  close(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
