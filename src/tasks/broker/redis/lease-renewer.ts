import { RENEWALS_PER_LEASE } from '../broker-settings.ts';
import type { LeasedTask } from '../broker.ts';
import { QueueKeys } from './keys.ts';
import type { HeldLease, LeaseBoard, LeaseId, LongId } from './lease-thread.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, secondsUp } from './replies.ts';
import { MOST_READ, Script, type ScriptArgument } from './script.ts';

/**
 * Extends leases of a queue.
 *
 * ARGV[1]   when the leases end
 * ARGV[2…]  per task: id, epoch
 *
 * Returns per task 1, or 0 if its lease is lost.
 */
export const EXTEND_LEASES = new Script(`
local score, outcomes = ARGV[1], {}
need('zset', LEASE)
writeAnyway(LEASE)
for i = 2, #ARGV, 2 do
  local id, epoch = ARGV[i], ARGV[i + 1]
  if holds(id, epoch) then
    redis.call('ZADD', LEASE, score, id)
    redis.call('HSET', TASK .. id, 'x:lease', epoch .. ':' .. score)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes
`);

/** The operation of the event loop. The thread that renews leases, too, runs the rest of this file. */
export const RENEWING = {
  async extendLeases(redis, tasks, leaseMs) {
    const extendIn = async (queue: string): Promise<LeasedTask[]> => {
      const inQueue = tasks.filter(({ message }) => message.queue === queue);
      const leases = inQueue.map((task) => ({ id: task.message.id, epoch: task.epoch, task }));
      const lost: LeasedTask[] = [];
      const endMs = (): number => redis.wallNowMs + leaseMs;
      for await (const [{ task }, endsMs] of extend(redis, redis.keysOf(queue), leases, endMs))
        if (endsMs === undefined) lost.push(task);
      return lost;
    };
    const queues = new Set(tasks.map(({ message }) => message.queue));
    return (await Promise.all([...queues].map(extendIn))).flat();
  },
} satisfies RedisOperations;

type ScriptRunner = Pick<RedisAccess, 'run'>;

interface LeaseRenewerOptions {
  readonly board: LeaseBoard;
  readonly queues: readonly string[];
  readonly leaseMs: number;
  /** Connects to Redis. Called before the first renewal. */
  readonly open: () => ScriptRunner;
  /** Called when a renewal fails; then not again before one has succeeded. */
  readonly onError: (error: unknown) => void;
}

/**
 * Reads the board at an interval, and renews the leases that were there at the interval before: a task that is shorter than the interval
 * costs nothing, and a server without longer tasks needs no connection.
 *
 * A lease that is lost is not renewed again: the server finds out by itself.
 */
export class LeaseRenewer {
  readonly #options: LeaseRenewerOptions;
  readonly #keys: readonly QueueKeys[];
  /** By slot, the generation that was there an interval ago. */
  readonly #seen: Int32Array;
  /** By slot, the generation whose lease is lost. */
  readonly #lost: Int32Array;
  readonly #longIds = new Map<number, LongId>();
  #redis: ScriptRunner | undefined;
  #isRenewing = false;
  #isFailing = false;

  constructor(options: LeaseRenewerOptions) {
    this.#options = options;
    this.#keys = options.queues.map((queue) => new QueueKeys(queue));
    this.#seen = new Int32Array(options.board.slots);
    this.#lost = new Int32Array(options.board.slots);
  }

  start(): void {
    setInterval(this.#onInterval, this.#options.leaseMs / RENEWALS_PER_LEASE);
  }

  /** Called with each id that is too long for the board. */
  addLongId(longId: LongId): void {
    this.#longIds.set(longId.slot, longId);
  }

  readonly #onInterval = (): void => {
    const due = this.#readBoard();
    if (due.length > 0 && !this.#isRenewing) void this.#renew(due);
  };

  /** Returns the leases that are due. */
  #readBoard(): HeldLease[] {
    const { board } = this.#options;
    const nowMs = Date.now();
    const due: HeldLease[] = [];
    for (let slot = 0; slot < board.slots; slot++) {
      const generation = board.generationAt(slot, nowMs);
      if (generation === 0 || generation === this.#lost[slot]) continue;
      const lease = generation === this.#seen[slot] ? board.read(slot, generation, this.#longIds) : undefined;
      if (lease !== undefined) due.push(lease);
      this.#seen[slot] = generation;
    }
    return due;
  }

  async #renew(leases: readonly HeldLease[]): Promise<void> {
    this.#isRenewing = true;
    try {
      await Promise.all(
        this.#keys.map((keys, queue) =>
          this.#extend(
            keys,
            leases.filter((lease) => lease.queue === queue),
          ),
        ),
      );
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
    if (leases.length === 0) return;
    this.#redis ??= open();
    const endMs = (): number => Date.now() + leaseMs;
    for await (const [lease, endsMs] of extend(this.#redis, keys, leases, endMs)) {
      if (endsMs === undefined) this.#lost[lease.slot] = lease.generation;
      else board.renewed(lease, endsMs);
    }
  }
}

/**
 * Extends leases of one queue, a piece a script. The thread and the event loop share it. Yields each lease with its new end; undefined if
 * it is lost.
 *
 * @param endMs - called for each piece.
 */
async function* extend<T extends LeaseId>(
  redis: ScriptRunner,
  { prefix }: QueueKeys,
  leases: readonly T[],
  endMs: () => number,
): AsyncGenerator<[lease: T, endsMs: number | undefined]> {
  for (let first = 0; first < leases.length; first += MOST_READ) {
    const some = leases.slice(first, first + MOST_READ);
    const endsMs = endMs();
    const args: ScriptArgument[] = [secondsUp(endsMs)];
    for (const { id, epoch } of some) args.push(id, epoch);
    const outcomes = itemsOf(await redis.run(EXTEND_LEASES, [prefix], args));
    for (const [at, lease] of some.entries()) yield [lease, outcomes[at] === 1 ? endsMs : undefined];
  }
}
