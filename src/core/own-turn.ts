import { ofHost } from './of-host.ts';

type CallLater = (callback: (argument: () => void) => void, argument: () => void) => void;

/** Read when the module loads: a test's fake timers must not be able to swallow what is called there. */
const setImmediate = ofHost('setImmediate') as CallLater | undefined; // browsers have none
const setTimeout = ofHost('setTimeout');
const afterIo: CallLater = setImmediate ?? ((callback, argument) => setTimeout(callback, 0, argument));

let pending = 0;

/** Calls back in a turn of the host's own, after the I/O that is ready. */
export function inOwnTurn(callback: () => void): void {
  pending++;
  afterIo(runOwnTurn, callback);
}

/** Resolves in a turn of the host's own, after the I/O that is ready. */
export function ownTurn(): Promise<void> {
  return new Promise<void>(inOwnTurn);
}

function runOwnTurn(callback: () => void): void {
  pending--;
  callback();
}

let held = 0;

/** Keeps virtual time from moving until some work of the host is done, however long that takes. */
export async function holdVirtualTime<T>(work: Promise<T>): Promise<T> {
  held++;
  try {
    return await work;
  } finally {
    held--;
  }
}

/** Whether work of the host is in progress that virtual time must wait for. */
export function isVirtualTimeHeld(): boolean {
  return held > 0;
}

/** How many calls of {@link inOwnTurn} are still to come: while there are any, virtual time must not move. */
export function pendingOwnTurns(): number {
  return pending;
}

/** Resolves in the next turn of the host, after all promise jobs. Does not count as an own turn. */
export function nextHostTurn(): Promise<void> {
  return new Promise((resolve) => {
    afterIo((callback) => {
      callback();
    }, resolve);
  });
}

/** Pieces of work in one turn of the event loop: about a millisecond of small ones. */
const PIECES_PER_TURN = 1_000;

/**
 * Gives the host its turn at intervals in a loop over work that may never wait for anything: without it no timeout
 * and no I/O would come before the end of the loop, also not the one that is to end it.
 */
export class TurnBudget {
  #left = PIECES_PER_TURN;

  /** One piece was done. @returns whether the host is due a turn: see `next`. */
  spend(): boolean {
    return --this.#left <= 0;
  }

  /** Resolves in a turn of its own, after the I/O that is ready. */
  async next(): Promise<void> {
    await ownTurn();
    this.#left = PIECES_PER_TURN;
  }
}
