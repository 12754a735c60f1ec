/**
 * Runs an asynchronous job one at a time. A trigger during a run makes the job run once more, however many triggers come.
 *
 *      trigger ──► run ──► triggered meanwhile? ── yes ──► run again ──► …
 *                                 └── no ──► idle
 *
 * WHY. The run that is under way may already have passed what the trigger is about, so each trigger must be followed by a run that
 * starts after it; one such run is enough for any number of triggers. O(1) a trigger, and no promise while it is idle.
 *
 * The checks of a purgatory follow the same rule with `CoalescedChecks`, which needs no promise for a check that ends at once.
 */
export class CoalescedRun {
  readonly #job: () => Promise<void>;
  #isRunning = false;
  #isTriggered = false;
  #running: Promise<void> | undefined;

  /** @param job - must not reject. */
  constructor(job: () => Promise<void>) {
    this.#job = job;
  }

  /** Resolves when it is idle again; undefined while it is idle. */
  get running(): Promise<void> | undefined {
    return this.#isRunning ? this.#untilIdle() : undefined;
  }

  /** Starts the job; if it is idle, inside this call. */
  trigger(): void {
    this.#isTriggered = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (this.#takeTrigger()) await this.#job();
    this.#isRunning = false;
  }

  async #untilIdle(): Promise<void> {
    await Promise.resolve(); // a job that starts inside `trigger` may read `running` before its run has a promise
    await this.#running;
  }

  #takeTrigger(): boolean {
    const isTriggered = this.#isTriggered;
    this.#isTriggered = false;
    return isTriggered;
  }
}
