import type { ClockTimeout } from '../../../core/clock.ts';
import { callEach } from '../../../core/report-uncaught.ts';
import { DEQUEUE_IN_FLOW, NO_FLOW } from './leases.ts';
import type { RedisAccess } from './redis-access.ts';
import { listOf, numberOf } from './script.ts';

/** Queues that are remembered: more than a server serves. */
const MAX_KNOWN = 1_000;

/** Longest wait for a token, in milliseconds: servers poll anyway. */
const MAX_WAIT_MS = 3_600_000;

interface KnownFlow {
  readonly isOn: boolean;
  readonly readAtMs: number;
}

/**
 * What a broker knows of the flow control of its queues: which have limits or keys, and when it is to notify its listeners because a
 * token comes. Other brokers set limits, too: what is known is read again when it is old.
 */
export class QueueFlows {
  readonly #redis: RedisAccess;
  readonly #known = new Map<string, KnownFlow>();
  readonly #timers = new Map<string, ClockTimeout>();

  constructor(redis: RedisAccess) {
    this.#redis = redis;
  }

  /** Whether a queue is flow controlled, as far as is known. */
  isOn(queue: string): boolean {
    return this.#known.get(queue)?.isOn === true;
  }

  /** Whether it was read, or set, less than `maxAgeMs` ago. */
  knows(queue: string, maxAgeMs: number): boolean {
    const known = this.#known.get(queue);
    return known !== undefined && this.#redis.settings.clock.now() - known.readAtMs < maxAgeMs;
  }

  set(queue: string, isOn: boolean): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(queue, { isOn, readAtMs: this.#redis.settings.clock.now() });
  }

  /** Reads whether a queue is flow controlled. */
  async read(queue: string): Promise<boolean> {
    const { limits, sequence } = this.#redis.keysOf(queue);
    const isOn = (await this.#redis.send((client) => client.exists(limits, sequence))) > 0;
    this.set(queue, isOn);
    return isOn;
  }

  /** Notifies the listeners after a time if tasks may run then. @param inMs - -1 for never. */
  comeAgain(queue: string, inMs: number): void {
    this.#timers.get(queue)?.cancel();
    this.#timers.delete(queue);
    if (inMs < 0 || [...this.#redis.listeners].every((listener) => listener.work === undefined)) return;
    const timer = this.#redis.settings.clock.setTimeout(
      () => {
        this.#timers.delete(queue);
        this.notify(queue).catch(() => undefined); // servers poll as well
      },
      Math.min(inMs, MAX_WAIT_MS),
    );
    timer.unref();
    this.#timers.set(queue, timer);
  }

  /** Notifies the listeners if tasks may run now; else when the next token comes. */
  async notify(queue: string): Promise<void> {
    const reply = listOf(await this.#redis.runIn(queue, DEQUEUE_IN_FLOW, [0, 0, 0]));
    const [againInMs, mayRun] = reply.map((each) => (Array.isArray(each) ? 0 : numberOf(each)));
    if (mayRun === 1) callEach([...this.#redis.listeners], (listener) => listener.work?.(queue));
    else if (againInMs !== undefined && againInMs !== NO_FLOW) this.comeAgain(queue, againInMs);
  }

  /** Forgets a queue that was removed. */
  forget(queue: string): void {
    this.comeAgain(queue, -1);
    this.#known.delete(queue);
  }

  close(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
