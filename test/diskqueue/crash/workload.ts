import { expect } from 'vitest';
import type { BackendQueue, Delivery } from '../../../src/diskqueue/backend-queue.ts';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import type { FileSystem } from '../../../src/log/file-system.ts';
import type { Random } from '../random.ts';
import { History, type PutRecord } from './history.ts';
import { openQueue, type Setup } from './open-queue.ts';

type Step = 'put' | 'receive' | 'ack' | 'nack' | 'flush' | 'empty' | 'reopen' | 'wait';

const STEPS: readonly Step[] = [
  ...(['put', 'put', 'put', 'put', 'receive', 'receive', 'receive', 'ack', 'ack', 'ack', 'nack'] as const),
  ...(['flush', 'wait', 'wait'] as const),
];

/** For disks that fail. */
export interface Tolerance {
  /** A call was rejected. It throws what must not be. */
  rejected(step: string, error: unknown): void;
  /** The queue could not be opened: the next time it must be. */
  notOpened(): void;
  /** Whether it could not even take back what it has refused: after a reopen, that may be there. */
  readonly keepsRefused: boolean;
}

/** Does things to a queue that a seed determines, and keeps a history of what was promised. */
export class Workload {
  readonly history: History;
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #setup: Setup;
  readonly #random: Random;
  #queue: DiskQueue | undefined;
  #held: { id: number; delivery: Delivery }[] = [];
  #putting: Promise<void>[] = [];
  readonly #now: () => number;
  readonly #tolerance: Tolerance | undefined;

  constructor(
    files: FileSystem,
    folder: string,
    setup: Setup,
    random: Random,
    now: () => number,
    tolerance?: Tolerance,
  ) {
    this.#tolerance = tolerance;
    this.#files = files;
    this.#folder = folder;
    this.#setup = setup;
    this.#random = random;
    this.#now = now;
    this.history = new History(now, setup.format === 'nsq');
  }

  async run(steps: number, last?: (queue: DiskQueue) => Promise<void>): Promise<void> {
    await this.#open();
    for (let i = 0; i < steps; i++) {
      const isRare = this.#random.chance(0.05);
      await this.#step(isRare ? this.#random.pick(['empty', 'reopen']) : this.#random.pick(STEPS));
    }
    await Promise.all(this.#putting.splice(0));
    await last?.(this.#queue as DiskQueue);
    await this.#close();
  }

  async #open(): Promise<void> {
    const open = (): Promise<DiskQueue> => openQueue(this.#files, this.#folder, this.#setup);
    try {
      this.#queue = await open();
    } catch (error) {
      this.#rejected('open', error);
      this.#tolerance?.notOpened();
      this.#queue = await open();
    }
  }

  #rejected(step: string, error: unknown): void {
    if (this.#tolerance === undefined) throw error;
    this.#tolerance.rejected(step, error);
  }

  async #tolerating(step: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#rejected(step, error);
    }
  }

  async #step(step: Step): Promise<void> {
    const random = this.#random;
    const queue = this.#queue as DiskQueue;
    if (step === 'put') for (let i = random.below(4); i >= 0; i--) void this.put(queue);
    else if (step === 'receive') {
      await this.#tolerating('receive', async () => {
        for (let i = random.below(4); i >= 0; i--) await this.#receive(queue);
      });
    } else if (step === 'ack') for (let i = random.below(3); i >= 0; i--) this.#settle(true);
    else if (step === 'nack') this.#settle(false);
    else if (step === 'flush') await this.#tolerating('flush', () => this.#flush(queue));
    else if (step === 'empty') await this.#tolerating('empty', () => this.#empty(queue));
    else if (step === 'reopen') {
      await this.#close();
      await this.#open();
    } else await Promise.all(this.#putting);
  }

  put(queue: BackendQueue): Promise<void> {
    const put = this.history.put(lengthOf(this.#random));
    const settled = this.#tolerating('put', async () => {
      try {
        await queue.put(put.data);
        this.#settled(put);
      } catch (error) {
        put.rejectedAt = this.#now();
        throw error;
      }
    });
    this.#putting.push(settled);
    return settled;
  }

  #settled(put: PutRecord): void {
    put.settledAt = this.#now();
    if ((this.#setup.durability ?? 'always') === 'always') put.durableAt ??= put.settledAt;
  }

  async #receive(queue: DiskQueue): Promise<void> {
    if ((await queue.peek()) === undefined) return;
    const delivery = await queue.receive();
    const id = this.history.idOf(delivery.data);
    const refusedAt = this.#tolerance?.keepsRefused === true ? undefined : this.history.puts[id]?.rejectedAt;
    expect(refusedAt, `message ${id} was refused, and is delivered`).toBeUndefined();
    this.#held.push({ id, delivery });
  }

  #settle(isDone: boolean): void {
    const [held] = this.#held.splice(this.#random.below(this.#held.length), 1);
    if (held === undefined) return;
    if (isDone) this.history.acked(held.id);
    if (isDone) held.delivery.ack();
    else held.delivery.nack();
  }

  async #flush(queue: DiskQueue): Promise<void> {
    const done = this.history.barrier();
    await queue.flush();
    done();
  }

  async #empty(queue: DiskQueue): Promise<void> {
    const done = this.history.emptied();
    this.#held = [];
    try {
      await queue.empty();
      done();
    } catch (error) {
      this.history.forgetAcks();
      throw error;
    }
  }

  async #close(): Promise<void> {
    const done = this.history.barrier();
    this.#held = [];
    await this.#tolerating('close', async () => {
      try {
        await this.#queue?.close();
        done();
      } finally {
        this.history.forgetAcks(); // also of those that a format does not save
      }
    });
    await Promise.all(this.#putting.splice(0));
  }
}

function lengthOf(random: Random): number {
  if (random.chance(0.8)) return random.below(100);
  return random.chance(0.95) ? random.below(2_000) : 150_000;
}
