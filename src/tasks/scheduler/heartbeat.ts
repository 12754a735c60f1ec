import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import type { ScheduleEntry } from '../broker/broker.ts';
import type { ResolvedSchedulerOptions } from './scheduler-options.ts';

/** What is shown lives for so many intervals: one that comes late does no harm. */
const INTERVALS_TO_LIVE = 2;

/** Shows the entries of a scheduler to whoever asks the broker: at once, and again and again if it forgets. */
export class Heartbeat {
  readonly #options: ResolvedSchedulerOptions;
  readonly #timer: SystemTimer;
  readonly #id: string;
  readonly #read: () => readonly ScheduleEntry[];
  #next: TimerId | undefined;
  #beating: Promise<void> | undefined;
  #state: 'new' | 'active' | 'stopped' = 'new';

  constructor(
    options: ResolvedSchedulerOptions,
    timer: SystemTimer,
    id: string,
    read: () => readonly ScheduleEntry[],
  ) {
    this.#options = options;
    this.#timer = timer;
    this.#id = id;
    this.#read = read;
  }

  /** Resolves after the first beat, whether it has arrived or not. */
  start(): Promise<void> {
    this.#state = 'active';
    return this.#beat();
  }

  /** Something has changed: those who look should not have to wait for it. */
  hasten(): void {
    if (this.#next !== undefined) this.#timer.reschedule(this.#next, 0);
  }

  /** Waits for a beat that is under way, and takes the entries down. */
  async stop(): Promise<void> {
    const { broker, logger } = this.#options;
    this.#state = 'stopped';
    if (this.#next !== undefined) this.#timer.cancel(this.#next);
    await this.#beating;
    try {
      await broker.withdrawScheduler(this.#id);
    } catch (error) {
      logger.warn({ err: error, id: this.#id }, 'scheduler: its entries are still shown');
    }
  }

  #beat(): Promise<void> {
    this.#next = undefined;
    this.#beating = this.#announce().finally(() => {
      this.#beating = undefined;
      this.#await();
    });
    return this.#beating;
  }

  async #announce(): Promise<void> {
    const { broker, heartbeatIntervalMs, logger } = this.#options;
    try {
      await broker.announceScheduler(this.#id, this.#read, heartbeatIntervalMs * INTERVALS_TO_LIVE);
    } catch (error) {
      logger.warn({ err: error, id: this.#id }, 'scheduler: its entries are not shown');
    }
  }

  /** Of a broker that asks by itself, once is enough. */
  #await(): void {
    const { broker, heartbeatIntervalMs } = this.#options;
    if (this.#state !== 'active' || broker.isSelfDriven) return;
    this.#next = this.#timer.schedule(heartbeatIntervalMs, beat, () => void this.#beat());
  }
}

function beat(beatOne: () => void): void {
  beatOne();
}
