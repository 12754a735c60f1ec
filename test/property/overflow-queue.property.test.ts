import fc from 'fast-check';
import { DiskQueue, OverflowQueue, type BackendQueue } from 'escapement/diskqueue';
import { expect } from 'vitest';
import { FakeBackend } from '../diskqueue/support/fake-backend.ts';
import { inFolder } from '../diskqueue/support/queues.ts';
import type { ModelMessage } from './disk-queue-model.ts';
import { queueAction, QueueWorld } from './queue-world.ts';
import { testProperty } from '../runs.ts';

/** Behind the queue is a real one on disk; its special is to close and to open again. */
class OnDiskWorld extends QueueWorld<OverflowQueue> {
  readonly #memorySize: number;
  readonly #dataPath: string;
  #backend!: DiskQueue;

  constructor(memorySize: number, dataPath: string) {
    super();
    this.#memorySize = memorySize;
    this.#dataPath = dataPath;
  }

  protected async open(): Promise<OverflowQueue> {
    this.#backend = await DiskQueue.open({
      ...{ name: 'q', dataPath: this.#dataPath, maxBytesPerFile: 300, durability: 'os' },
      onCorruption: ({ reason }) => {
        throw new Error(reason);
      },
    });
    return new OverflowQueue({ memorySize: this.#memorySize, backend: this.#backend });
  }

  /** What was in memory is behind what the disk had. */
  protected async special(): Promise<void> {
    const onDisk = this.#backend.depth;
    await this.queue.close();
    await this.reopened(await this.open());
    expect(this.queue.depth).toBe(this.model.depth);
    const places = new Map(this.model.messages.map((message, place) => [message.id, { message, place }]));
    const found = (await this.#idsOf()).map(
      (id) => places.get(id) as { message: ModelMessage; place: number },
    );
    expect(new Set(found).size).toBe(places.size);
    for (const part of [found.slice(0, onDisk), found.slice(onDisk)]) {
      const order = part.map(({ place }) => place);
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }
    this.model.messages = found.map(({ message }) => message);
  }

  /** Looks at everything, and gives it back. Every message has its id in its first bytes. */
  async #idsOf(): Promise<number[]> {
    const deliveries = await Promise.all(this.model.messages.map(() => this.queue.receive()));
    const ids = deliveries.map(({ data }) => Buffer.from(data).readUInt32LE());
    for (const delivery of deliveries) delivery.nack();
    return ids;
  }
}

interface Trouble {
  readonly delays: readonly number[];
  readonly failures: readonly ('put' | 'receive' | 'empty')[];
}

/** Behind the queue is one that takes its time and fails; its special is more of that. */
class TroubledWorld extends QueueWorld<OverflowQueue> {
  readonly #memorySize: number;
  readonly #backend = new FakeBackend();
  readonly #troubles: Trouble[];

  constructor(memorySize: number, troubles: readonly Trouble[]) {
    super();
    this.#memorySize = memorySize;
    this.#troubles = [...troubles];
  }

  protected open(): Promise<OverflowQueue> {
    const backend: BackendQueue = this.#backend;
    return Promise.resolve(new OverflowQueue({ memorySize: this.#memorySize, backend }));
  }

  protected special(): Promise<void> {
    const { delays, failures } = this.#troubles.shift() ?? { delays: [], failures: [] };
    this.#backend.delays.push(...delays);
    this.#backend.failures.push(...failures);
    return Promise.resolve();
  }

  protected override isExpected(error: unknown): boolean {
    return error instanceof Error && error.message.startsWith('the fake fails');
  }
}

const memorySize = fc.integer({ min: 0, max: 6 });
const actions = fc.array(queueAction(fc.integer({ min: 4, max: 50 })), { maxLength: 60, size: 'max' });

testProperty(
  'memory and a disk behave like one list; a close puts what was in memory last',
  fc.asyncProperty(memorySize, actions, (size, todo) =>
    inFolder((dataPath) => new OnDiskWorld(size, dataPath).run(todo)),
  ),
  30,
);

const trouble: fc.Arbitrary<Trouble> = fc.record({
  delays: fc.array(fc.nat(4), { maxLength: 6 }),
  failures: fc.array(fc.constantFrom('put', 'receive'), { maxLength: 2 }),
});

testProperty(
  'memory and a slow backend that fails behave like one list',
  fc.asyncProperty(memorySize, fc.array(trouble, { maxLength: 6 }), actions, async (size, troubles, todo) => {
    await new TroubledWorld(size, troubles).run(todo);
  }),
  200,
);
