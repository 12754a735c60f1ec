import { inOwnTurn } from '../../core/own-turn.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import { RENEWALS_PER_LEASE } from '../broker/broker-settings.ts';
import type { LeaseHolder } from '../broker/broker.ts';
import { leaseLostReason, type RunTable, type TaskRun } from './run.ts';
import type { ResolvedServerOptions } from './server-options.ts';

/**
 * Renews the leases of the runs. A lease is lost if another worker has it, or if it could not be renewed before its end; then its
 * run is interrupted.
 *
 * The broker always decides first: if the process was blocked for longer than a lease, this server may still have the task. A handler that
 * holds the event loop blocks these renewals too; a broker may offer a `LeaseHolder` that renews meanwhile. The timer is armed only
 * while tasks run: an idle server does nothing here, and a short task costs nothing.
 */
export class LeaseKeeper {
  readonly #options: ResolvedServerOptions;
  readonly #timer: SystemTimer;
  readonly #runs: RunTable;
  /** Renews leases too, while the event loop is blocked. */
  readonly #holder: LeaseHolder | undefined;
  #isArmed = false;
  #isRenewing = false;

  constructor(options: ResolvedServerOptions, timer: SystemTimer, runs: RunTable) {
    const { broker, queueNames, concurrency, leaseMs, logger } = options;
    this.#options = options;
    this.#timer = timer;
    this.#runs = runs;
    this.#holder = broker.leaseHolder?.({
      ...{ queues: queueNames, slots: concurrency, leaseMs },
      onError: (error) => {
        logger.warn({ err: error }, 'leases not renewed by their thread');
      },
    });
  }

  watch(runs: readonly TaskRun[]): void {
    if (this.#holder !== undefined) {
      const { graceMs } = this.#options; // a run has settled by then: its lease is not renewed for longer
      for (const { slot, leased, deadlineMs } of runs)
        this.#holder.hold(slot, leased, deadlineMs === 0 ? 0 : deadlineMs + graceMs);
    }
    if (!this.#isArmed) this.#arm(runs);
  }

  release({ slot }: TaskRun): void {
    this.#holder?.release(slot);
  }

  /** Returns until when no other worker can have the task of a run, as far as is known here; on the monotonic clock. */
  leaseUntilMs({ slot, leaseUntilMs }: TaskRun): number {
    const renewedUntilMs = this.#holder?.renewedUntilMs(slot) ?? 0;
    if (renewedUntilMs === 0) return leaseUntilMs;
    const { clock } = this.#timer;
    return Math.max(leaseUntilMs, clock.now() + renewedUntilMs - clock.wallNow());
  }

  async close(): Promise<void> {
    await this.#holder?.close();
  }

  /** Renews now. A renewal that is pending has one turn of the host to finish: its reply may have arrived, and not been read yet. */
  renew(): void {
    if (!this.#isRenewing) void this.#renew(this.#runs.list());
    else inOwnTurn(this.#loseUnanswered);
  }

  readonly #loseUnanswered = (): void => {
    if (this.#isRenewing) this.#loseExpired(this.#runs.list());
  };

  readonly #heartbeat = (): void => {
    this.#isArmed = false;
    const runs = this.#runs.list();
    if (runs.length === 0) return;
    this.renew();
    this.#arm(runs);
  };

  /** Arms the timer for the next renewal, or for the next end of a lease that cannot be renewed. */
  #arm(runs: readonly TaskRun[]): void {
    const nowMs = this.#timer.clock.now();
    let atMs = nowMs + this.#options.leaseMs / RENEWALS_PER_LEASE;
    for (const { leaseUntilMs } of runs) if (leaseUntilMs > nowMs) atMs = Math.min(atMs, leaseUntilMs);
    this.#isArmed = true;
    this.#timer.scheduleAt(atMs, this.#heartbeat, undefined);
  }

  async #renew(runs: readonly TaskRun[]): Promise<void> {
    const { broker, leaseMs, logger } = this.#options;
    if (runs.length === 0) return;
    const leaseUntilMs = broker.clock.now() + leaseMs;
    const leases = runs.map(({ leased }) => leased);
    this.#isRenewing = true;
    try {
      const lost = new Set(await broker.extendLeases(leases, leaseMs));
      for (const run of runs) {
        if (lost.has(run.leased)) run.interrupt(leaseLostReason());
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
    const nowMs = this.#timer.clock.now();
    for (const run of runs) {
      if (this.leaseUntilMs(run) <= nowMs) run.interrupt(leaseLostReason());
    }
  }
}
