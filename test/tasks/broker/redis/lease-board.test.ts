import { expect, it } from 'vitest';
import { LeaseBoard, makeLeaseCells, type LongId } from '../../../../src/tasks/broker/redis/lease-thread.ts';

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

it('a thread that sleeps is woken once', () => {
  const { ours, theirs } = boards();
  expect(ours.mustWake()).toBe(false);
  theirs.sleep();
  expect([ours.mustWake(), ours.mustWake(), theirs.mustWake()]).toEqual([true, false, false]);
});
