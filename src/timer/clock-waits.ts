/** One caller of `advanceClock` that waits. */
interface ClockWait {
  readonly deadlineMs: number;
  readonly resolve: (fellDue: boolean) => void;
}

/** The callers of `advanceClock` that wait for a bucket to fall due. Few at any time: usually one loop. */
export class ClockWaits {
  #waits: ClockWait[] = [];

  get isEmpty(): boolean {
    return this.#waits.length === 0;
  }

  /** When the first caller gives up; `Infinity` if nobody waits. */
  get earliestDeadlineMs(): number {
    return this.#waits.reduce((earliest, wait) => Math.min(earliest, wait.deadlineMs), Infinity);
  }

  add(deadlineMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waits.push({ deadlineMs, resolve });
    });
  }

  /** Answers everybody. */
  settleAll(fellDue: boolean): void {
    const waits = this.#waits;
    this.#waits = [];
    for (const wait of waits) wait.resolve(fellDue);
  }

  /** Answers those whose time is up: nothing fell due. */
  settleExpired(nowMs: number): void {
    const expired = this.#waits.filter((wait) => wait.deadlineMs <= nowMs);
    if (expired.length === 0) return;
    this.#waits = this.#waits.filter((wait) => wait.deadlineMs > nowMs);
    for (const wait of expired) wait.resolve(false);
  }
}
