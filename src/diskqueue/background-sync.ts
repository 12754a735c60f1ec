import { inOwnTurn } from '../core/own-turn.ts';
import { Serial } from '../core/serial.ts';
import { type CommitLoop, type Durability, SyncSchedule } from '../log/commit-loop.ts';
import type { ResolvedDiskQueueOptions } from './disk-queue-options.ts';
import type { MessageLog } from './message-log.ts';

/**
 * Writes acknowledgements, and syncs what was put and acknowledged, without a call of the user.
 *
 *      acked ──► save: with the host, so that it survives the process; one for all acknowledgements of a turn
 *      acked, committed ──► schedule ──► sync: on the disk, so that it survives the machine
 *
 * Saves run one at a time, and beside the commits: acknowledgements do not wait for the sync of a put. `flush` and `alone`
 * are steps of the commit loop; `alone` excludes saves, too.
 */
export class BackgroundSync {
  readonly #log: MessageLog;
  readonly #commits: CommitLoop;
  readonly #durability: Durability;
  readonly #schedule: SyncSchedule;
  readonly #saves = new Serial();
  #isSaveRequested = false;
  #isStopped = false;

  constructor(log: MessageLog, commits: CommitLoop, options: ResolvedDiskQueueOptions) {
    const { durability, syncEvery, syncTimeoutMs, clock } = options;
    this.#log = log;
    this.#commits = commits;
    this.#durability = durability;
    this.#schedule = new SyncSchedule(clock, syncEvery, syncTimeoutMs, () => {
      this.#sync();
    });
  }

  /** Messages were committed. With `always` they are on the disk; with `os` only `flush` and `close` bring them there. */
  committed(messages: number): void {
    if (this.#durability === 'interval') this.#schedule.count(messages);
  }

  acked(): void {
    this.#schedule.count(1);
    if (this.#isSaveRequested) return;
    this.#isSaveRequested = true;
    inOwnTurn(() => {
      void this.#saves.run(() => this.#save());
    });
  }

  /** Syncs everything that was put and acknowledged before. */
  async flush(): Promise<void> {
    let saving = Promise.resolve();
    try {
      await this.#commits.run(async () => {
        this.#schedule.reset();
        await this.#log.sync();
        saving = this.#saves.run(() => this.#log.saveAcks(true)); // begun here, it runs before a later `alone`
      });
      await saving;
    } catch (error) {
      this.#schedule.retry();
      throw error;
    }
  }

  /** Runs an action after everything that was begun, and while no message or acknowledgement is written. */
  alone(action: () => Promise<void>): Promise<void> {
    return this.#commits.run(() => this.#saves.run(action));
  }

  stop(): void {
    this.#isStopped = true;
    this.#schedule.stop();
  }

  /** If it fails, the log keeps the acknowledgements for the next save. */
  async #save(): Promise<void> {
    this.#isSaveRequested = false;
    if (this.#isStopped || !this.#log.hasUnsavedAcks) return;
    await this.#log.saveAcks(false).catch(() => {
      this.#schedule.retry();
    });
  }

  #sync(): void {
    if (this.#durability === 'interval') {
      this.flush().catch(() => undefined); // the next `flush` or `close` rejects if messages may not be on the disk
      return;
    }
    this.#saves
      .run(() => this.#log.saveAcks(true))
      .catch(() => {
        this.#schedule.retry();
      });
  }
}
