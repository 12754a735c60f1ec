import { expectTypeOf, test } from 'vitest';
import type { SignalOptions } from 'escapement';
import {
  DiskQueue,
  DummyBackendQueue,
  OverflowQueue,
  type BackendQueue,
  type CorruptionEvent,
  type Delivery,
  type DiskQueueOptions,
  type Durability,
  type OverflowQueueOptions,
} from 'escapement/diskqueue';

test('DiskQueue, DummyBackendQueue and OverflowQueue are backends', () => {
  expectTypeOf<DiskQueue>().toExtend<BackendQueue>();
  expectTypeOf<DummyBackendQueue>().toExtend<BackendQueue>();
  expectTypeOf<OverflowQueue>().toExtend<BackendQueue>();
  expectTypeOf<OverflowQueueOptions>().toEqualTypeOf<{
    readonly memorySize: number;
    readonly backend: BackendQueue;
  }>();
  expectTypeOf<DummyBackendQueue['dropped']>().toEqualTypeOf<number>();
});

test('a queue is opened, not made', async () => {
  expectTypeOf<(typeof DiskQueue)['open']>().toEqualTypeOf<
    (options: DiskQueueOptions) => Promise<DiskQueue>
  >();
  // @ts-expect-error -- DiskQueue.open makes it
  expectTypeOf(new DiskQueue()).toEqualTypeOf<DiskQueue>();
  // @ts-expect-error -- both are needed
  await DiskQueue.open({ name: 'a' });
  // @ts-expect-error -- an option that does not exist
  await DiskQueue.open({ name: 'a', dataPath: 'b', maxMsgSize: 5 });
  // @ts-expect-error -- another durability
  await DiskQueue.open({ name: 'a', dataPath: 'b', durability: 'never' });
});

test('options of a disk queue are optional, except for its name and its folder', () => {
  expectTypeOf<Durability>().toEqualTypeOf<'always' | 'interval' | 'os'>();
  expectTypeOf<Pick<DiskQueueOptions, 'name' | 'dataPath'>>().toEqualTypeOf<{
    readonly name: string;
    readonly dataPath: string;
  }>();
  expectTypeOf<Partial<DiskQueueOptions>>().toExtend<Omit<DiskQueueOptions, 'name' | 'dataPath'>>();
  expectTypeOf<DiskQueueOptions['format']>().toEqualTypeOf<'checked' | 'nsq' | undefined>();
  expectTypeOf<DiskQueueOptions['whenFull']>().toEqualTypeOf<'reject' | 'wait' | undefined>();
  expectTypeOf<NonNullable<DiskQueueOptions['onCorruption']>>().parameters.toEqualTypeOf<
    [event: CorruptionEvent]
  >();
  expectTypeOf<CorruptionEvent['firstSequence']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<Pick<CorruptionEvent, 'file' | 'offset' | 'bytes' | 'reason'>>().toEqualTypeOf<{
    readonly file: string;
    readonly offset: number;
    readonly bytes: number;
    readonly reason: string;
  }>();
});

test('methods of a disk queue take bytes and return promises', () => {
  expectTypeOf<DiskQueue['put']>().toEqualTypeOf<
    (data: Uint8Array, options?: SignalOptions) => Promise<void>
  >();
  expectTypeOf<OverflowQueue['put']>().toEqualTypeOf<DiskQueue['put']>();
  expectTypeOf<DiskQueue['putBeyondLimit']>().toEqualTypeOf<(data: Uint8Array) => Promise<void>>();
  expectTypeOf<DiskQueue['receive']>().toEqualTypeOf<(options?: SignalOptions) => Promise<Delivery>>();
  expectTypeOf<DiskQueue['peek']>().toEqualTypeOf<() => Promise<Uint8Array | undefined>>();
  expectTypeOf<DiskQueue['flush' | 'empty' | 'close' | 'delete']>().toEqualTypeOf<() => Promise<void>>();
  expectTypeOf<DiskQueue>().toExtend<AsyncDisposable & AsyncIterable<Uint8Array, undefined, undefined>>();
  expectTypeOf<OverflowQueue>().toExtend<AsyncDisposable & AsyncIterable<Uint8Array, undefined, undefined>>();
  expectTypeOf<Delivery['data']>().toEqualTypeOf<Uint8Array>();
  expectTypeOf<Delivery['ack' | 'nack']>().toEqualTypeOf<() => void>();
  expectTypeOf<DiskQueue['depth' | 'bytes']>().toEqualTypeOf<number>();
  // @ts-expect-error -- bytes, not text
  expectTypeOf<DiskQueue['put']>().toBeCallableWith('text');
});

test('a loop over a disk queue yields bytes', () => {
  const use = async (queue: DiskQueue): Promise<void> => {
    for await (const data of queue) expectTypeOf(data).toEqualTypeOf<Uint8Array>();
    // @ts-expect-error -- the depth is read, not written
    queue.depth = 5;
    // @ts-expect-error -- and so are the bytes
    queue.bytes = 5;
  };
  expectTypeOf(use).toBeFunction();
});
