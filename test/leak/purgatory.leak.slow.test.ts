import {
  AsyncDelayedOperation,
  DelayedOperation,
  DelayedOperationPurgatory,
  ManualClock,
  SystemTimer,
} from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { expect, test } from 'vitest';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { collect, heldBytes, isCollected } from './collect.ts';

const noop = (): void => undefined;

/** Something that is big enough to matter, and that the test can watch being collected. */
class Operation extends DelayedOperation {
  readonly bytes = new Array<number>(100).fill(0);
  holds = false;

  override tryComplete(): boolean {
    return this.holds && this.forceComplete();
  }

  override onComplete(): void {
    this.bytes.length = 100;
  }

  override onExpiration(): void {
    this.bytes.length = 100;
  }
}

class Remote extends AsyncDelayedOperation {
  override tryCompleteAsync(): Promise<boolean> {
    return Promise.resolve(false);
  }

  override onComplete(): void {
    // It is over.
  }

  override onExpiration(): void {
    // It is over.
  }
}

class SmallOperation extends Operation {
  override readonly bytes = [];
}

/** What a test process moves by on its own: 13 bytes per operation, so that any operation or key that is left exceeds it. */
const SLACK_BYTES = 1_000_000;

test.each(['mixed', 'checked', 'forced', 'expired', 'cancelled', 'waits', 'new keys'])(
  'after 75 000 operations through 3 keys each the heap is back where it was: %s',
  async (what) => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const purgatory = new DelayedOperationPurgatory<string>('test', { timer });
    const { signal } = new AbortController();
    const staying = new SmallOperation(1e9);
    purgatory.tryCompleteElseWatch(staying, ['stays', 'k0', 'k1', 'k2']);
    const ends = ['checked', 'forced', 'expired', 'cancelled'];
    const cycle = (i: number): void => {
      const prefix = what === 'new keys' ? `k${i}-` : 'k';
      const keys = [0, 1, 2].map((k) => `${prefix}${(i + k) % 100}`);
      if (what === 'waits') {
        purgatory.wait(keys, () => undefined, { timeoutMs: 1, signal }).catch(noop);
        clock.advance(1);
        return;
      }
      const operation = new SmallOperation(100 + (i % 7));
      purgatory.tryCompleteElseWatch(operation, keys);
      const end = ends.includes(what) ? what : ends[i % 4];
      if (end === 'forced') operation.forceComplete();
      else if (end === 'expired') clock.advance(110);
      else if (end === 'checked') {
        operation.holds = true;
        purgatory.checkAndComplete(keys[2] as string);
      } else purgatory.cancelForKey(keys[1] as string);
    };
    const cycles = what === 'waits' ? 20_000 : 75_000;
    // The host's queue of promise jobs grows to the most it ever held, and stays: that is not ours.
    for (let i = 0; i < (what === 'waits' ? cycles : cycles / 10); i++) cycle(i);
    const before = await heldBytes();
    for (let i = 0; i < cycles; i++) cycle(i);
    const grownBy = (await heldBytes()) - before;
    expect(grownBy).toBeLessThan(SLACK_BYTES);
    expect(timer.size).toBeLessThanOrEqual(1);
    expect(purgatory.watched).toBeLessThanOrEqual(4);
    checkPurgatory(purgatory);
  },
);

test('what held 150 000 operations that wait together is given back', async () => {
  const clock = new ManualClock();
  const purgatory = new DelayedOperationPurgatory<number>('test', { clock });
  const watchMany = (): void => {
    for (let i = 0; i < 50_000; i++) {
      purgatory.tryCompleteElseWatch(new SmallOperation(50 + (i % 100)), [i, i + 1, -(i % 1_000)]);
    }
    clock.advance(200);
  };
  watchMany();
  const before = await heldBytes();
  for (let i = 0; i < 3; i++) watchMany();
  expect((await heldBytes()) - before).toBeLessThan(SLACK_BYTES);
  expect([purgatory.watched, purgatory.numDelayed, purgatory.watchedKeys]).toEqual([0, 0, 0]);
});

type End = (purgatory: DelayedOperationPurgatory<string>, operation: Operation, clock: ManualClock) => void;

const ENDS: Record<string, End> = {
  'it was checked': (purgatory, operation) => {
    operation.holds = true;
    purgatory.checkAndComplete('y');
  },
  'it was forced': (_, operation) => operation.forceComplete(),
  'it expired': (_, __, clock) => clock.advance(10),
  'its key was cancelled': (purgatory) => purgatory.cancelForKey('y'),
};

test.each(Object.entries(ENDS))('a completed operation is held by nothing when %s', async (_, end) => {
  const clock = new ManualClock();
  const purgatory = new DelayedOperationPurgatory<string>('test', { clock });
  const watchAndEnd = (): WeakRef<Operation> => {
    const operation = new Operation(10);
    purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z']);
    end(purgatory, operation, clock);
    return new WeakRef(operation);
  };
  const neighbours = [new Operation(1e6), new Operation(1e6)];
  for (const neighbour of neighbours) purgatory.tryCompleteElseWatch(neighbour, ['x', 'z']);
  expect(await isCollected(watchAndEnd())).toBe(true);
  expect(purgatory.watched).toBe(4);
  expect(neighbours.map(({ isCompleted }) => isCompleted)).toEqual([false, false]);
});

test('a completed operation is held by nothing when it was the last that was checked, or one that watched another', async () => {
  const purgatory = new DelayedOperationPurgatory<string>('test', { clock: new ManualClock() });
  const watchAndEnd = (): WeakRef<Operation> => {
    const operation = new Operation(10);
    purgatory.tryCompleteElseWatch(operation, ['x']);
    purgatory.checkAndComplete('x');
    operation.forceComplete();
    return new WeakRef(operation);
  };
  expect(await isCollected(watchAndEnd())).toBe(true);
});

test('neither the value nor the condition of a wait that is over is held', async () => {
  const purgatory = new DelayedOperationPurgatory<string>('test', { clock: new ManualClock() });
  const { signal } = new AbortController();
  const waitAndEnd = async (): Promise<WeakRef<Operation>[]> => {
    const [value, inCondition] = [new Operation(1), new Operation(1)];
    const isOpen = { is: false };
    const wait = purgatory.wait(['x'], () => (isOpen.is || inCondition.holds ? value : undefined), {
      ...{ timeoutMs: 10, signal },
    });
    isOpen.is = true;
    purgatory.checkAndComplete('x');
    await wait;
    return [new WeakRef(value), new WeakRef(inCondition)];
  };
  expect(await isCollected(...(await waitAndEnd()))).toBe(true);
  expect(signal.aborted).toBe(false);
});

test.each(['complete', 'drop'] as const)(
  'a purgatory is collectable once it is closed with %s, whatever waited',
  async (pending) => {
    const metrics = new RecordingMetrics();
    const clock = new ManualClock();
    const operations: DelayedOperation[] = [];
    const { signal } = new AbortController();
    const watchAndClose = (): WeakRef<DelayedOperationPurgatory<string>> => {
      const purgatory = new DelayedOperationPurgatory<string>('test', { clock, metrics });
      for (let i = 0; i < 100; i++) {
        const operation = new Operation(i);
        operations.push(operation);
        purgatory.tryCompleteElseWatch(operation, [`${i}`, 'x']);
      }
      purgatory.wait(['x'], () => undefined, { timeoutMs: 10, signal }).catch(noop);
      purgatory.close({ pending });
      return new WeakRef(purgatory);
    };
    expect(await isCollected(watchAndClose())).toBe(true);
    expect([metrics.readers.size, clock.pendingWakeups, operations.length]).toEqual([0, 0, 100]);
  },
);

test.each(['an operation', 'an asynchronous operation'])(
  'a purgatory is collectable although %s that was in it is kept',
  async (what) => {
    const clock = new ManualClock();
    const operation = what === 'an operation' ? new Operation(10) : new Remote(10);
    const watchAndForget = async (): Promise<WeakRef<DelayedOperationPurgatory<string>>> => {
      const purgatory = new DelayedOperationPurgatory<string>('test', { clock });
      purgatory.tryCompleteElseWatch(operation, ['x']);
      await clock.advanceAsync(10);
      return new WeakRef(purgatory);
    };
    const purgatory = await watchAndForget();
    await collect();
    expect(operation.isCompleted).toBe(true);
    expect(purgatory.deref()).toBeUndefined();
  },
);

test('an idle purgatory that nothing refers to is collectable without close', async () => {
  const clock = new ManualClock();
  const useAndForget = (): WeakRef<DelayedOperationPurgatory<string>> => {
    const purgatory = new DelayedOperationPurgatory<string>('test', { clock });
    purgatory.tryCompleteElseWatch(new Operation(10), ['x']);
    clock.advance(10);
    return new WeakRef(purgatory);
  };
  expect(await isCollected(useAndForget())).toBe(true);
});
