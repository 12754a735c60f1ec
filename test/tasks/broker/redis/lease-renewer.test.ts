import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LeaseBoard, makeLeaseCells } from '../../../../src/tasks/broker/redis/lease-board.ts';
import { LeaseRenewer } from '../../../../src/tasks/broker/redis/lease-renewer.ts';
import type { ScriptArgument, ScriptReply } from '../../../../src/tasks/broker/redis/script.ts';

const NOW_MS = 1_795_282_000_000;
const BEAT_MS = 5_000;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW_MS });
});

afterEach(() => {
  vi.useRealTimers();
});

type Answer = (ids: readonly ScriptArgument[]) => Promise<ScriptReply>;

const renewAll: Answer = (ids) => Promise.resolve(ids.map(() => 1));

/** A renewer of leases of 30 s, awake, and what it asks for: when, of which queue, which ids. */
function started(answer: Answer = renewAll) {
  const board = new LeaseBoard(makeLeaseCells(4));
  const asked: [seconds: number, key: string, ...ids: ScriptArgument[]][] = [];
  const errors: unknown[] = [];
  const run = (
    _: unknown,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<ScriptReply> => {
    const ids = args.slice(2).filter((_id, at) => at % 2 === 0);
    asked.push([(Date.now() - NOW_MS) / 1_000, keys[0] as string, ...ids]);
    return answer(ids);
  };
  const open = vi.fn(() => ({ run }));
  const renewer = new LeaseRenewer({
    ...{ board, queues: ['a', 'b'], leaseMs: 6 * BEAT_MS, open },
    onError: (error) => errors.push(error),
  });
  renewer.wake();
  const put = (place: number, id: string, queue = 0, untilMs = 0): void => {
    const long = board.put(place, { id, epoch: 7 }, queue, untilMs);
    if (long !== undefined) renewer.addLongId(long);
    if (board.mustWake()) renewer.wake();
  };
  return { board, put, asked, errors, open };
}

it('renews at every beat what it has seen before, in a script for each queue', async () => {
  const { board, put, asked } = started();
  put(0, 'one');
  put(1, 'two', 1);
  put(3, 'x'.repeat(100));
  await vi.advanceTimersByTimeAsync(2 * BEAT_MS);
  expect(asked).toEqual([
    [10, 'asynq:{a}:lease', 'one', 'x'.repeat(100)],
    [10, 'asynq:{b}:lease', 'two'],
  ]);
  expect(board.renewedUntilMs(0)).toBe(NOW_MS + 8 * BEAT_MS);
  await vi.advanceTimersByTimeAsync(BEAT_MS);
  expect(asked.slice(2).map(([seconds]) => seconds)).toEqual([15, 15]);
});

it('asks for nothing, and needs no connection, if no task is longer than a beat', async () => {
  const { board, put, asked, open } = started();
  for (let round = 0; round < 20; round++) {
    put(round % 4, `task ${round}`);
    await vi.advanceTimersByTimeAsync(BEAT_MS - 1);
    board.free(round % 4);
  }
  expect(asked).toEqual([]);
  expect(open).not.toHaveBeenCalled();
});

it('sleeps when there is nothing, and is woken', async () => {
  const { board, put, asked } = started();
  await vi.advanceTimersByTimeAsync(BEAT_MS);
  expect(vi.getTimerCount()).toBe(0);
  put(2, 'task');
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(2 * BEAT_MS);
  expect(asked).toHaveLength(1);
  board.free(2);
  await vi.advanceTimersByTimeAsync(BEAT_MS);
  expect([asked.length, vi.getTimerCount()]).toEqual([1, 0]);
});

it('what comes while it falls asleep keeps it awake', async () => {
  const { board, asked } = started();
  const sleep = board.sleep.bind(board);
  vi.spyOn(board, 'sleep').mockImplementationOnce(() => {
    board.put(0, { id: 'task', epoch: 7 }, 0, 0); // … and it was not asleep yet: nobody has to wake it
    sleep();
  });
  await vi.advanceTimersByTimeAsync(2 * BEAT_MS);
  expect(asked).toEqual([[10, 'asynq:{a}:lease', 'task']]);
});

it('renews nothing for longer than it may, and sleeps then', async () => {
  const { put, asked } = started();
  put(0, 'stuck', 0, NOW_MS + 3.5 * BEAT_MS);
  await vi.advanceTimersByTimeAsync(10 * BEAT_MS);
  expect(asked.map(([seconds]) => seconds)).toEqual([10, 15]);
  expect(vi.getTimerCount()).toBe(0);
});

it('leaves alone what is lost, also if it is still there', async () => {
  const { board, put, asked } = started((ids) => Promise.resolve(ids.map((id) => (id === 'lost' ? 0 : 1))));
  put(0, 'lost');
  put(1, 'held');
  await vi.advanceTimersByTimeAsync(3 * BEAT_MS);
  expect(asked.map((ask) => ask.slice(2))).toEqual([['lost', 'held'], ['held']]);
  expect(board.renewedUntilMs(0)).toBe(0);
});

it('goes on when Redis does not answer, and tells it once, until it does', async () => {
  let isDown = true;
  const { board, put, asked, errors } = started((ids) => {
    return isDown ? Promise.reject(new Error('down')) : renewAll(ids);
  });
  put(0, 'task');
  await vi.advanceTimersByTimeAsync(4 * BEAT_MS);
  expect([asked.length, errors]).toEqual([3, [new Error('down')]]);
  isDown = false;
  await vi.advanceTimersByTimeAsync(BEAT_MS);
  expect(board.renewedUntilMs(0)).toBe(NOW_MS + 11 * BEAT_MS);
  isDown = true;
  await vi.advanceTimersByTimeAsync(2 * BEAT_MS);
  expect(errors).toHaveLength(2);
});

it('does not ask again before there is an answer', async () => {
  const { put, asked } = started(() => new Promise(() => undefined));
  put(0, 'task');
  await vi.advanceTimersByTimeAsync(10 * BEAT_MS);
  expect(asked).toHaveLength(1);
});
