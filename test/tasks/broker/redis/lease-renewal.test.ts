import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LeaseBoard, type LongId, makeLeaseCells } from '../../../../src/tasks/broker/redis/lease-thread.ts';
import { LeaseRenewer } from '../../../../src/tasks/broker/redis/lease-renewer.ts';
import type { ScriptArgument, ScriptReply } from '../../../../src/tasks/broker/redis/script.ts';

describe('a lease renewer', () => {
  const NOW_MS = 1_795_282_000_000;
  const INTERVAL_MS = 5_000;

  beforeEach(() => {
    vi.useFakeTimers({ now: NOW_MS });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  type Answer = (ids: readonly ScriptArgument[]) => Promise<ScriptReply>;

  const renewAll: Answer = (ids) => Promise.resolve(ids.map(() => 1));

  /** A renewer of leases of 30 s, and its scripts: when it ran them, for which queue, for which ids. */
  function started(answer: Answer = renewAll) {
    const board = new LeaseBoard(makeLeaseCells(4));
    const asked: [seconds: number, key: string, ...ids: ScriptArgument[]][] = [];
    const errors: unknown[] = [];
    const run = (
      _: unknown,
      keys: readonly string[],
      args: readonly ScriptArgument[],
    ): Promise<ScriptReply> => {
      const ids = args.slice(1).filter((_id, at) => at % 2 === 0);
      asked.push([(Date.now() - NOW_MS) / 1_000, keys[0] as string, ...ids]);
      return answer(ids);
    };
    const open = vi.fn(() => ({ run }));
    const renewer = new LeaseRenewer({
      ...{ board, queues: ['a', 'b'], leaseMs: 6 * INTERVAL_MS, open },
      onError: (error) => errors.push(error),
    });
    renewer.start();
    const put = (slot: number, id: string, queue = 0, untilMs = 0): void => {
      const long = board.put(slot, { id, epoch: 7 }, queue, untilMs);
      if (long !== undefined) renewer.addLongId(long);
    };
    return { board, put, asked, errors, open };
  }

  it('a lease that was on the board an interval ago is renewed, in one script per queue', async () => {
    const { board, put, asked } = started();
    put(0, 'one');
    put(1, 'two', 1);
    put(3, 'x'.repeat(100));
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS);
    expect(asked).toEqual([
      [10, 'asynq:{a}:', 'one', 'x'.repeat(100)],
      [10, 'asynq:{b}:', 'two'],
    ]);
    expect(board.renewedUntilMs(0)).toBe(NOW_MS + 8 * INTERVAL_MS);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS);
    expect(asked.slice(2).map(([seconds]) => seconds)).toEqual([15, 15]);
  });

  it('a renewer whose tasks are all shorter than an interval runs no script and opens no connection', async () => {
    const { board, put, asked, open } = started();
    for (let round = 0; round < 20; round++) {
      put(round % 4, `task ${round}`);
      await vi.advanceTimersByTimeAsync(INTERVAL_MS - 1);
      board.free(round % 4);
    }
    expect(asked).toEqual([]);
    expect(open).not.toHaveBeenCalled();
  });

  it('a renewer runs no script while the board is empty, and renews the next lease', async () => {
    const { board, put, asked } = started();
    put(2, 'task');
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS);
    board.free(2);
    await vi.advanceTimersByTimeAsync(10 * INTERVAL_MS);
    expect(asked).toHaveLength(1);
    put(2, 'next');
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS);
    expect(asked.slice(1)).toEqual([[70, 'asynq:{a}:', 'next']]);
  });

  it('a lease is not renewed after its limit', async () => {
    const { put, asked } = started();
    put(0, 'stuck', 0, NOW_MS + 3.5 * INTERVAL_MS);
    await vi.advanceTimersByTimeAsync(10 * INTERVAL_MS);
    expect(asked.map(([seconds]) => seconds)).toEqual([10, 15]);
  });

  it('a lease that is lost is not renewed again, although it is still on the board', async () => {
    const { board, put, asked } = started((ids) => Promise.resolve(ids.map((id) => (id === 'lost' ? 0 : 1))));
    put(0, 'lost');
    put(1, 'held');
    await vi.advanceTimersByTimeAsync(3 * INTERVAL_MS);
    expect(asked.map((ask) => ask.slice(2))).toEqual([['lost', 'held'], ['held']]);
    expect(board.renewedUntilMs(0)).toBe(0);
  });

  it('a renewer continues when renewals fail, and reports that once until one succeeds', async () => {
    let isDown = true;
    const { board, put, asked, errors } = started((ids) => {
      return isDown ? Promise.reject(new Error('down')) : renewAll(ids);
    });
    put(0, 'task');
    await vi.advanceTimersByTimeAsync(4 * INTERVAL_MS);
    expect([asked.length, errors]).toEqual([3, [new Error('down')]]);
    isDown = false;
    await vi.advanceTimersByTimeAsync(INTERVAL_MS);
    expect(board.renewedUntilMs(0)).toBe(NOW_MS + 11 * INTERVAL_MS);
    isDown = true;
    await vi.advanceTimersByTimeAsync(2 * INTERVAL_MS);
    expect(errors).toHaveLength(2);
  });

  it('a renewer does not start a renewal before the last one has settled', async () => {
    const { put, asked } = started(() => new Promise(() => undefined));
    put(0, 'task');
    await vi.advanceTimersByTimeAsync(10 * INTERVAL_MS);
    expect(asked).toHaveLength(1);
  });
});

describe('a lease board', () => {
  /** The board, as both sides have it. */
  function boards(slots = 2): { ours: LeaseBoard; theirs: LeaseBoard } {
    const cells = makeLeaseCells(slots);
    return { ours: new LeaseBoard(cells), theirs: new LeaseBoard(cells) };
  }

  const TOLD_NOTHING = new Map<number, LongId>();
  const EPOCH = 1_795_282_097_865_947;

  it('the thread reads the lease that the event loop has put on the board', () => {
    const { ours, theirs } = boards();
    ours.put(1, { id: 'größe-1', epoch: EPOCH }, 3, 0);
    const generation = theirs.generationAt(1, 0);
    expect(theirs.read(1, generation, TOLD_NOTHING)).toEqual({
      ...{ slot: 1, generation, id: 'größe-1', epoch: EPOCH, queue: 3 },
    });
    expect(theirs.generationAt(0, 0)).toBe(0);
  });

  it('a lease is on the board until it is freed, or its limit has passed', () => {
    const { ours, theirs } = boards();
    ours.put(0, { id: 'a', epoch: 1 }, 0, 1_000);
    ours.put(1, { id: 'b', epoch: 1 }, 0, 0);
    ours.free(1);
    expect([theirs.generationAt(0, 999), theirs.generationAt(0, 1_000), theirs.generationAt(1, 0)]).toEqual([
      1, 0, 0,
    ]);
  });

  it('an id that is too long for the board is returned, and read with the help of a message', () => {
    const { ours, theirs } = boards();
    const longest = '€'.repeat(42);
    expect(ours.put(0, { id: longest, epoch: 1 }, 0, 0)).toBeUndefined();
    ours.put(1, { id: 'next', epoch: 1 }, 0, 0);
    expect(theirs.read(0, 1, TOLD_NOTHING)?.id).toBe(longest);
    const long = ours.put(0, { id: 'x'.repeat(43), epoch: 1 }, 0, 0) as LongId;
    expect(long).toEqual({ slot: 0, generation: 3, id: 'x'.repeat(43) });
    expect(theirs.read(0, 3, TOLD_NOTHING)).toBeUndefined();
    expect(theirs.read(0, 3, new Map([[0, { ...long, generation: 1 }]]))).toBeUndefined();
    expect(theirs.read(0, 3, new Map([[0, long]]))?.id).toBe(long.id);
  });

  it('a renewal is ignored if the slot holds another task by then', () => {
    const { ours, theirs } = boards();
    ours.put(0, { id: 'a', epoch: 1 }, 0, 0);
    const first = theirs.read(0, 1, TOLD_NOTHING);
    if (first === undefined) throw new Error('it is there');
    theirs.renewed(first, 5_000);
    expect(ours.renewedUntilMs(0)).toBe(5_000);
    ours.put(0, { id: 'b', epoch: 2 }, 0, 0);
    theirs.renewed(first, 6_000);
    expect(ours.renewedUntilMs(0)).toBe(0);
  });
});
