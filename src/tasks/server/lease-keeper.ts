import { inOwnTurn } from '../../core/own-turn.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { Broker, LeaseHolder } from '../broker/broker.ts';
import { leaseLost } from './interruptions.ts';
import type { Logger } from './logger.ts';
import type { RunTable } from './run-table.ts';
import type { TaskRun } from './task-run.ts';

/** Renewals in the time of a lease: five may fail. */
const BEATS_PER_LEASE = 6;

/** What leases are kept with. */
export interface LeaseKeeperOptions {
  readonly broker: Broker;
  readonly timer: SystemTimer;
  readonly runs: RunTable;
  readonly leaseMs: number;
  /** How long a run has to settle after its deadline, in milliseconds: nobody renews its lease for longer. */
  readonly graceMs: number;
  /** Renews them too, while the event loop is held. */
  readonly holder: LeaseHolder | undefined;
  readonly logger: Logger;
  /** The lease of a run is lost. */
  readonly onLost: (run: TaskRun, reason: ReturnType<typeof leaseLost>) => void;
}

/**
 * Renews the leases of what runs. A lease that somebody else has, or that could not be renewed before its end, is lost.
 *
 * The broker is always asked first: when the process was blocked for longer than a lease, the task may still be ours.
 * A handler that holds the event loop holds this up too; a broker may have somebody who does not mind: see `LeaseHolder`.
 * Armed only while something runs, so an idle server has no beat, and a task that is short costs nothing.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  #isArmed = false;
  #isRenewing = false;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /** These are about to run. */
  watch(runs: readonly TaskRun[]): void {
    const { holder, graceMs } = this.#options;
    if (holder !== undefined) {
      for (const { place, leased, deadlineMs } of runs)
        holder.hold(place, leased, deadlineMs === 0 ? 0 : deadlineMs + graceMs);
    }
    if (!this.#isArmed) this.#arm(Infinity);
  }

  /** It is over. */
  release({ place }: TaskRun): void {
    this.#options.holder?.release(place);
  }

  /** Until when nobody else has the task of a run that has its place, as far as anybody here knows; monotonic. */
  leaseUntilMs({ place, leaseUntilMs }: TaskRun): number {
    const { holder, timer } = this.#options;
    const renewedUntilMs = holder?.renewedUntilMs(place) ?? 0;
    if (renewedUntilMs === 0) return leaseUntilMs;
    return Math.max(leaseUntilMs, timer.clock.now() + renewedUntilMs - timer.clock.wallNow());
  }

  /** Nothing runs any more. */
  async close(): Promise<void> {
    await this.#options.holder?.close();
  }

  /** @internal It is time. */
  beat(): void {
    this.#isArmed = false;
    const runs = this.#options.runs.list();
    if (runs.length === 0) return;
    this.renew();
    this.#arm(earliestEndMs(runs));
  }

  /** Now. One that is under way has a turn of the host to be answered: the answer may be there, and not read yet. */
  renew(): void {
    if (!this.#isRenewing) void this.#renew(this.#options.runs.list());
    else inOwnTurn(this.#loseUnanswered);
  }

  readonly #loseUnanswered = (): void => {
    if (this.#isRenewing) this.#loseExpired(this.#options.runs.list());
  };

  /** At the next beat, or when the first lease ends that cannot be renewed. */
  #arm(leaseUntilMs: number): void {
    const { timer, leaseMs } = this.#options;
    const nowMs = timer.clock.now();
    const leftMs = leaseUntilMs > nowMs ? leaseUntilMs - nowMs : Infinity;
    this.#isArmed = true;
    timer.schedule(Math.min(leaseMs / BEATS_PER_LEASE, leftMs), beat, this);
  }

  async #renew(runs: readonly TaskRun[]): Promise<void> {
    const { broker, leaseMs, logger } = this.#options;
    if (runs.length === 0) return;
    const leaseUntilMs = broker.clock.now() + leaseMs;
    this.#isRenewing = true;
    try {
      const lost = new Set(
        await broker.extendLeases(
          runs.map(({ leased }) => leased),
          leaseMs,
        ),
      );
      for (const run of runs) {
        if (lost.has(run.leased)) this.#options.onLost(run, leaseLost());
        else run.leaseUntilMs = leaseUntilMs;
      }
    } catch (error) {
      logger.warn({ err: error, tasks: runs.length }, 'leases not renewed');
      this.#loseExpired(runs);
    } finally {
      this.#isRenewing = false;
    }
  }

  #loseExpired(runs: readonly TaskRun[]): void {
    const nowMs = this.#options.timer.clock.now();
    for (const run of runs) {
      if (this.leaseUntilMs(run) <= nowMs) this.#options.onLost(run, leaseLost());
    }
  }
}

const beat = (keeper: LeaseKeeper): void => {
  keeper.beat();
};

/** Of those that are not lost already. */
function earliestEndMs(runs: readonly TaskRun[]): number {
  return runs.reduce((least, run) => (run.isLeaseLost ? least : Math.min(least, run.leaseUntilMs)), Infinity);
}
