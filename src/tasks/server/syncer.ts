import type { Clock } from '../../core/clock.ts';
import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import { BackOff } from './back-off.ts';
import { codeOf } from './code-of.ts';
import { serverClosed } from './interruptions.ts';

/** Something that was to be written, and may not have been. */
export interface UnsureWrite {
  /** From then on somebody else may have the task; on the monotonic clock. */
  readonly untilMs: number;
  readonly write: () => Promise<void>;
  /** It is written. Must not throw. */
  readonly written: () => void;
  /** It never will be. Must not throw. */
  readonly lost: (error: unknown) => void;
}

/**
 * Tries again, with back-off, to write what became of tasks when the broker could not be reached. asynq's has not worked
 * since its version 0.25 (B1); without one a single lost answer means that a task is done twice.
 *
 * A write that failed may have happened all the same. Then trying again says that the lease is lost, and as long as the
 * lease would last, nothing but that write can have ended it.
 */
export class Syncer {
  readonly #timer: SystemTimer;
  readonly #clock: Clock;
  readonly #backOff = new BackOff();
  #writes: UnsureWrite[] = [];
  /** Those that are being tried. */
  #trying = 0;
  #id: TimerId | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(timer: SystemTimer) {
    this.#timer = timer;
    this.#clock = timer.clock;
  }

  /** How many writes are not done. */
  get size(): number {
    return this.#writes.length + this.#trying;
  }

  add(write: UnsureWrite): void {
    if (this.#isStopped) {
      write.lost(serverClosed());
      return;
    }
    this.#writes.push(write);
    this.#arm();
  }

  /** Tries everything once more, and gives the rest up. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    if (this.#id !== undefined) this.#timer.cancel(this.#id);
    this.#id = undefined;
    await this.#round();
    for (const { lost } of this.#writes.splice(0)) lost(serverClosed());
  }

  #arm(): void {
    if (this.#isStopped || this.#writes.length === 0 || this.#id !== undefined || this.#running !== undefined)
      return;
    const leftMs = Math.min(...this.#writes.map(({ untilMs }) => untilMs)) - this.#clock.now();
    // A last time when the first lease ends: until then it can be told from somebody else's.
    const inMs = leftMs > 0 ? Math.min(this.#backOff.next(), leftMs) : this.#backOff.next();
    this.#id = this.#timer.schedule(inMs, retry, this);
  }

  /** @internal The back-off is over. */
  retry(): void {
    this.#id = undefined;
    this.#running = this.#round().finally(() => {
      this.#running = undefined;
      this.#arm();
    });
  }

  /** In the order they came, all at once: they are of different tasks. */
  async #round(): Promise<void> {
    const writes = this.#writes.splice(0);
    this.#trying = writes.length;
    const isWritten = await Promise.all(writes.map((write) => this.#try(write)));
    this.#trying = 0;
    if (isWritten.includes(true)) this.#backOff.reset();
  }

  async #try(unsure: UnsureWrite): Promise<boolean> {
    const { untilMs, write, written, lost } = unsure;
    try {
      await write();
    } catch (error) {
      const isPast = this.#clock.now() >= untilMs;
      const code = codeOf(error);
      if (code !== 'ERR_LEASE_LOST' || isPast) {
        if (isPast || code === 'ERR_BROKER_CLOSED') lost(error);
        else this.#writes.push(unsure);
        return false;
      }
    }
    written();
    return true;
  }
}

const retry = (syncer: Syncer): void => {
  syncer.retry();
};
