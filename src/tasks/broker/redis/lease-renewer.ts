import { extendLeases } from './extend-leases.ts';
import { QueueKeys } from './keys.ts';
import type { HeldLease, LeaseBoard, LongId } from './lease-board.ts';
import type { RedisAccess } from './redis-access.ts';

/** Renewals in the time of a lease: five may fail. */
const BEATS_PER_LEASE = 6;

/** What one script extends at most: some milliseconds in which Redis does nothing else. */
const MAX_PER_SCRIPT = 1_000;

/** What leases are renewed with. */
export interface LeaseRenewerOptions {
  readonly board: LeaseBoard;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  /** A way to Redis. Called when there is something to renew, the first time. */
  readonly open: () => Pick<RedisAccess, 'run'>;
  /** It does not work. Called once, until it works again. */
  readonly onError: (error: unknown) => void;
}

/**
 * Looks at the board at every beat, and renews what it has seen there before: what is shorter than a beat is none of its
 * business, and a server that has nothing else needs no connection. With nothing on the board it sleeps.
 *
 * A lease that is lost is left alone: whoever has it finds that out for himself.
 */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  readonly #keys: readonly QueueKeys[];
  /** By place, the generation that was there at the last beat. */
  readonly #seen: Int32Array;
  /** By place, the generation whose lease is lost. */
  readonly #lost: Int32Array;
  readonly #longIds = new Map<number, LongId>();
  #redis: Pick<RedisAccess, 'run'> | undefined;
  #isArmed = false;
  #isRenewing = false;
  #isFailing = false;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
    this.#keys = options.queues.map((queue) => new QueueKeys(queue));
    this.#seen = new Int32Array(options.board.places);
    this.#lost = new Int32Array(options.board.places);
  }

  /** Something is on the board. */
  wake(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setTimeout(this.#beat, this.#options.leaseMs / BEATS_PER_LEASE);
  }

  tell(longId: LongId): void {
    this.#longIds.set(longId.place, longId);
  }

  readonly #beat = (): void => {
    this.#isArmed = false;
    const { board } = this.#options;
    const { isEmpty, due } = this.#look();
    if (isEmpty) {
      board.sleep();
      if (!this.#look().isEmpty && board.mustWake()) this.wake();
      return;
    }
    if (due.length > 0 && !this.#isRenewing) void this.#renew(due);
    this.wake();
  };

  #look(): { readonly isEmpty: boolean; readonly due: readonly HeldLease[] } {
    const { board } = this.#options;
    const nowMs = Date.now();
    const due: HeldLease[] = [];
    let isEmpty = true;
    for (let place = 0; place < board.places; place++) {
      const generation = board.generationAt(place, nowMs);
      if (generation === 0 || generation === this.#lost[place]) continue;
      isEmpty = false;
      const lease =
        generation === this.#seen[place] ? board.read(place, generation, this.#longIds) : undefined;
      if (lease !== undefined) due.push(lease);
      this.#seen[place] = generation;
    }
    return { isEmpty, due };
  }

  async #renew(leases: readonly HeldLease[]): Promise<void> {
    this.#isRenewing = true;
    try {
      const ofQueues = this.#keys.map((keys, queue) => ({
        keys,
        some: leases.filter((lease) => lease.queue === queue),
      }));
      await Promise.all(ofQueues.map(({ keys, some }) => this.#extend(keys, some)));
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#options.onError(error);
      this.#isFailing = true;
    } finally {
      this.#isRenewing = false;
    }
  }

  async #extend(keys: QueueKeys, leases: readonly HeldLease[]): Promise<void> {
    const { board, leaseMs, open } = this.#options;
    for (let first = 0; first < leases.length; first += MAX_PER_SCRIPT) {
      this.#redis ??= open();
      const some = leases.slice(first, first + MAX_PER_SCRIPT);
      const untilMs = Date.now() + leaseMs;
      const lost = new Set(await extendLeases(this.#redis, keys, some, untilMs));
      for (const lease of some) {
        if (lost.has(lease)) this.#lost[lease.place] = lease.generation;
        else board.renewed(lease, untilMs);
      }
    }
  }
}
