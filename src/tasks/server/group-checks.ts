import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';

/** asynq's: groups that are looked at, or aggregated, at once. */
const MOST_RUNNING = 3;

/** A group that is looked at, now or later. */
export interface GroupCheck {
  readonly queue: string;
  readonly group: string;
}

interface Entry extends GroupCheck {
  readonly key: string;
  /** `line`: it waits for its turn. `idle`: nothing, or a timer, is on. */
  state: 'idle' | 'line' | 'running';
  /** Somebody has asked while it was running. */
  isWanted: boolean;
  timerId: TimerId | undefined;
}

/** Looks at groups when somebody asks, or when it is time: each one alone, and a few at once. */
export class GroupChecks {
  readonly #timer: SystemTimer;
  /** @returns when to check again, in milliseconds: 0 for behind the others that wait, undefined for when the group is asked for. */
  readonly #check: (check: GroupCheck) => Promise<number | undefined>;
  readonly #entries = new Map<string, Entry>();
  readonly #line: Entry[] = [];
  readonly #running = new Set<Promise<void>>();
  #isStopped = false;

  constructor(timer: SystemTimer, check: (check: GroupCheck) => Promise<number | undefined>) {
    this.#timer = timer;
    this.#check = check;
  }

  /** A group is to be looked at. */
  ask(queue: string, group: string): void {
    const key = JSON.stringify([queue, group]);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { queue, group, key, state: 'idle', isWanted: false, timerId: undefined };
      this.#entries.set(key, entry);
    }
    this.#askFor(entry);
  }

  /** Resolves when what runs has ended. Nothing more is looked at. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    this.#line.length = 0;
    for (const entry of this.#entries.values()) this.#disarm(entry);
    this.#entries.clear();
    await Promise.all(this.#running);
  }

  readonly #askAgain = (entry: Entry): void => {
    entry.timerId = undefined;
    this.#askFor(entry);
  };

  #askFor(entry: Entry): void {
    if (this.#isStopped) return;
    if (entry.state === 'running') entry.isWanted = true;
    if (entry.state !== 'idle') return;
    this.#disarm(entry);
    entry.state = 'line';
    this.#line.push(entry);
    this.#startNext();
  }

  #startNext(): void {
    while (this.#running.size < MOST_RUNNING) {
      const entry = this.#line.shift();
      if (entry === undefined) return;
      const running: Promise<void> = this.#run(entry).finally(() => {
        this.#running.delete(running);
        this.#startNext();
      });
      this.#running.add(running);
    }
  }

  async #run(entry: Entry): Promise<void> {
    entry.state = 'running';
    entry.isWanted = false;
    const againInMs = await this.#check(entry);
    entry.state = 'idle';
    if (this.#isStopped) return;
    if (wasAsked(entry) || againInMs === 0) this.#askFor(entry);
    else if (againInMs === undefined) this.#entries.delete(entry.key);
    else entry.timerId = this.#timer.schedule(againInMs, this.#askAgain, entry);
  }

  #disarm(entry: Entry): void {
    if (entry.timerId !== undefined) this.#timer.cancel(entry.timerId);
    entry.timerId = undefined;
  }
}

/** A call, because it may change while the check runs, and the compiler does not know. */
function wasAsked({ isWanted }: Entry): boolean {
  return isWanted;
}
