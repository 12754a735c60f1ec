import { EscapementError } from 'escapement';
import fc from 'fast-check';
import { DiskQueue, type DiskQueueOptions } from 'escapement/diskqueue';
import { expect } from 'vitest';
import { FILE_SYSTEM } from '../../src/log/file-system.ts';
import { RecordingFiles, type FileCall } from '../diskqueue/support/recording-files.ts';
import { FORMATS, inFolder } from '../diskqueue/support/queues.ts';
import { weighted } from './actions.ts';
import { dataOf } from './disk-queue-model.ts';
import { queueAction, QueueWorld, type QueueAction } from './queue-world.ts';
import { testProperty } from '../runs.ts';

const RUNS = 40;

type Settings = Pick<DiskQueueOptions, 'durability' | 'maxBytesPerFile' | 'syncEvery'> & {
  readonly specials: readonly ('peek' | 'flush' | 'reopen' | 'loop')[];
};

/** Damage is never made here, so none may be reported. */
function openDiskQueue(options: DiskQueueOptions): Promise<DiskQueue> {
  return DiskQueue.open({
    ...options,
    onCorruption: ({ reason }) => {
      throw new Error(reason);
    },
  });
}

/** One that knows its bytes. */
abstract class BytesWorld extends QueueWorld<DiskQueue> {
  protected override check(action: QueueAction): void {
    expect(this.queue.bytes, JSON.stringify(action)).toBe(this.model.bytes);
  }
}

class DiskQueueWorld extends BytesWorld {
  readonly #options: DiskQueueOptions;
  readonly #specials: Settings['specials'];
  #special = 0;

  constructor(options: DiskQueueOptions, specials: Settings['specials']) {
    super();
    this.#options = options;
    this.#specials = specials;
  }

  protected open(): Promise<DiskQueue> {
    return openDiskQueue(this.#options);
  }

  protected async special(): Promise<void> {
    const special = this.#specials[this.#special++ % this.#specials.length];
    if (special === 'peek') await this.#peek();
    else if (special === 'flush') await this.queue.flush();
    else if (special === 'loop') await this.#loop();
    else {
      await this.queue.close();
      await this.reopened(await this.open(), this.#options.format === 'nsq');
    }
  }

  async #peek(): Promise<void> {
    const peeked = await this.queue.peek();
    const [first] = this.model.ready;
    expect(peeked && Buffer.from(peeked)).toEqual(first && dataOf(first));
  }

  /** Takes two messages, if there are so many, in a loop that is left at the third. */
  async #loop(): Promise<void> {
    let left = Math.min(this.model.ready.length, 3);
    if (left === 0) return;
    for await (const data of this.queue) {
      const message = this.model.handOut();
      expect(Buffer.from(data)).toEqual(message && dataOf(message));
      left--;
      if (message !== undefined) this.model.settle(message, left > 0);
      if (left === 0) break;
    }
  }
}

/** A call of the file system that fails, after some that do not. */
interface Fault {
  readonly operation: FileCall['operation'];
  readonly after: number;
  readonly times: number;
}

/** On a disk that refuses calls now and then; its special is a fault, or the end of all of them and a reopen. */
class FaultyWorld extends BytesWorld {
  readonly #options: DiskQueueOptions;
  readonly #faults: (Fault | 'reopen')[];
  readonly #files = new RecordingFiles();

  constructor(options: DiskQueueOptions, faults: readonly (Fault | 'reopen')[]) {
    super();
    this.#options = options;
    this.#faults = [...faults];
  }

  protected open(): Promise<DiskQueue> {
    return openDiskQueue({ ...this.#options, [FILE_SYSTEM]: this.#files } as DiskQueueOptions);
  }

  protected async special(): Promise<void> {
    const fault = this.#faults.shift() ?? 'reopen';
    if (fault === 'reopen') {
      this.#files.heal();
      await this.queue.flush();
      await this.queue.close();
      await this.reopened(await this.open(), this.#options.format === 'nsq');
    } else {
      this.#files.fail(fault.operation, fault);
    }
  }

  protected override async end(): Promise<void> {
    this.#files.heal();
    await super.end();
  }

  protected override isExpected(error: unknown): boolean {
    return error instanceof EscapementError && error.code === 'ERR_QUEUE_IO';
  }
}

const fault: fc.Arbitrary<Fault> = fc.record({
  operation: fc.constantFrom(
    'write',
    'sync',
    'create',
    'truncate',
    'read',
    'open',
    'unlink',
    'syncFolder',
    'rename',
  ),
  after: fc.nat(5),
  times: fc.integer({ min: 1, max: 4 }),
});

const settings: fc.Arbitrary<Settings> = fc.record({
  durability: fc.constantFrom('always', 'interval', 'os'),
  maxBytesPerFile: fc.constantFrom(1, 256, 300, 1_000, 100_000),
  syncEvery: fc.integer({ min: 1, max: 10 }),
  specials: fc.array(fc.constantFrom('peek', 'flush', 'reopen', 'loop'), { minLength: 1, maxLength: 10 }),
});

const length = weighted([5, fc.nat(60)], [2, fc.nat(400)], [1, fc.constantFrom(0, 3_000, 140_000)]);

for (const format of FORMATS) {
  testProperty(
    `a disk queue of the ${format} format behaves like a list, whatever is done to it`,
    fc.asyncProperty(
      settings,
      fc.array(queueAction(length), { minLength: 5, maxLength: 60, size: 'max' }),
      ({ specials, ...options }, actions) =>
        inFolder((dataPath) =>
          new DiskQueueWorld({ ...options, name: 'q', dataPath, format }, specials).run(actions),
        ),
    ),
    RUNS,
  );

  testProperty(
    `a put that a failing disk refuses changes nothing in a disk queue of the ${format} format`,
    fc.asyncProperty(
      fc.constantFrom(1, 256, 300, 1_000, 100_000),
      fc.array(fc.oneof(fault, fault, fc.constant('reopen' as const)), { maxLength: 10 }),
      fc.array(queueAction(length), { minLength: 5, maxLength: 60, size: 'max' }),
      (maxBytesPerFile, faults, actions) =>
        inFolder((dataPath) =>
          new FaultyWorld({ name: 'q', dataPath, format, maxBytesPerFile }, faults).run(actions),
        ),
    ),
    RUNS,
  );
}
