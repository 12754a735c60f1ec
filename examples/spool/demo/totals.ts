import type { Status } from '../shipper/progress.ts';

/** What all shippers together have done: each counts from zero. */
export class Totals {
  deepest = 0;
  readonly #statuses = new Map<number, Status>();

  /** The last status of a shipper. */
  of(pid: number): Status | undefined {
    return this.#statuses.get(pid);
  }

  /** @returns the sums, and the spool as this shipper sees it. */
  add(status: Status): Status {
    this.#statuses.set(status.pid, status);
    this.deepest = Math.max(this.deepest, status.depth);
    const [taken, forwarded] = [this.#sum('taken'), this.#sum('forwarded')];
    return { ...status, taken, forwarded, retries: this.retries, rejected: this.#sum('rejected') };
  }

  get retries(): number {
    return this.#sum('retries');
  }

  #sum(field: 'taken' | 'forwarded' | 'retries' | 'rejected'): number {
    return [...this.#statuses.values()].reduce((sum, status) => sum + status[field], 0);
  }
}
