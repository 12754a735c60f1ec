import { expectTypeOf, test } from 'vitest';
import {
  AsyncDelayedOperation,
  DelayedOperation,
  DelayedOperationPurgatory,
  TimerTask,
  type CompletionReason,
  type PurgatoryOptions,
} from 'escapement';
import { checkPurgatory } from 'escapement/testing';

class Produce extends DelayedOperation {
  readonly offset = 0;
  override tryComplete(): boolean {
    return this.forceComplete();
  }
  override onComplete(reason: CompletionReason): void {
    expectTypeOf(reason).toEqualTypeOf<'tried' | 'forced' | 'expired' | 'closed'>();
  }
  override onExpiration(): void {
    expectTypeOf(this.isCompleted).toEqualTypeOf<boolean>();
  }
}

test('an operation is a task of a timer', () => {
  expectTypeOf<DelayedOperation>().toExtend<TimerTask>();
  expectTypeOf<AsyncDelayedOperation>().toExtend<DelayedOperation>();
  expectTypeOf<AsyncDelayedOperation['tryCompleteAsync']>().toEqualTypeOf<() => Promise<boolean>>();
  expectTypeOf<DelayedOperation['maybeTryComplete']>().toEqualTypeOf<() => boolean>();
  expectTypeOf<DelayedOperation['forceComplete']>().toEqualTypeOf<() => boolean>();
});

test('a purgatory gives back the operations that it takes', () => {
  const purgatory = new DelayedOperationPurgatory<string, Produce>('test', {
    onError: (error, operation) => {
      expectTypeOf(error).toEqualTypeOf<unknown>();
      expectTypeOf(operation).toEqualTypeOf<Produce>();
    },
  });
  expectTypeOf(purgatory).toExtend<Disposable>();
  expectTypeOf(purgatory.cancelForKey('x')).toEqualTypeOf<Produce[]>();
  expectTypeOf(purgatory.close({ pending: 'drop' })).toEqualTypeOf<Produce[]>();
  expectTypeOf(purgatory.checkAndComplete('x')).toEqualTypeOf<number>();
  expectTypeOf(purgatory.tryCompleteElseWatch(new Produce(5), new Set(['x']))).toEqualTypeOf<boolean>();
  checkPurgatory(purgatory);
  expectTypeOf<(typeof purgatory)['tryCompleteElseWatch']>().parameter(0).toEqualTypeOf<Produce>();
  // @ts-expect-error -- another key
  purgatory.checkAndComplete(5);
  // @ts-expect-error -- the gauges are read, not written
  purgatory.watched = 5;
});

test('a purgatory without a type of operations takes any operation', () => {
  const purgatory = new DelayedOperationPurgatory<{ topic: string }>('test', { keyOf: ({ topic }) => topic });
  expectTypeOf(purgatory.close()).toEqualTypeOf<DelayedOperation[]>();
  expectTypeOf<(typeof purgatory)['tryCompleteElseWatch']>().parameter(0).toEqualTypeOf<DelayedOperation>();
  // @ts-expect-error -- keyOf makes something plain
  const options: PurgatoryOptions<object> = { keyOf: () => ({}) };
  expectTypeOf(options).toEqualTypeOf<PurgatoryOptions<object>>();
});

test('wait resolves with what its condition returns, but never with undefined', () => {
  const purgatory = new DelayedOperationPurgatory<string>('test');
  const options = { timeoutMs: 5 };
  expectTypeOf(purgatory.wait(['x'], () => 5, options)).toEqualTypeOf<Promise<number>>();
  const later = (): Promise<string | null | undefined> => Promise.resolve('');
  expectTypeOf(purgatory.wait(['x'], later, options)).toEqualTypeOf<Promise<string | null>>();
  // @ts-expect-error -- without a timeout
  void purgatory.wait(['x'], later, {});
});
