import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { CommitLoop, type CommitTarget } from '../../src/log/commit-loop.ts';
import type { AppendResult } from '../../src/log/segment.ts';
import { Random } from '../diskqueue/random.ts';
import { FIRST_SEED, runs } from '../runs.ts';

let calls: string[];
let loop: CommitLoop<string>;
/** Called after a write. @returns what has failed, if anything has. */
let written: (records: readonly string[]) => Error | undefined;
let failedSync: Error | undefined;
let mayJoin: boolean;

const target: CommitTarget<string> = {
  append(records): Promise<AppendResult> {
    calls.push(`append ${records.join(' ')}`);
    const error = written(records);
    return Promise.resolve(error === undefined ? { appended: records.length } : { appended: 0, error });
  },
  sync() {
    calls.push('sync');
    return failedSync === undefined ? Promise.resolve() : Promise.reject(failedSync);
  },
  joins: () => mayJoin,
};

beforeEach(() => {
  calls = [];
  failedSync = undefined;
  mayJoin = true;
  loop = new CommitLoop<string>(target, true, {
    now: () => NaN,
    committed: (records, bytes) => calls.push(`committed ${records} (${bytes} bytes)`),
    refused: (_, error) => error,
  });
});

/** Puts `done` as soon as `start` is written. @returns the outcomes of both. */
async function startAndDone(): Promise<unknown[]> {
  let done: Promise<void> | undefined;
  written = (records) => {
    if (records.includes('start')) done = loop.put('done');
    return undefined;
  };
  const [start] = await Promise.allSettled([loop.put('start')]);
  const [late] = await Promise.allSettled([done]);
  return [start, late];
}

test('a put that comes between the write and the sync of another one shares the sync, if the target lets it join', async () => {
  await startAndDone();
  expect(calls).toEqual(['append start', 'append done', 'sync', 'committed 2 (9 bytes)']);
});

test('puts of which each comes after the write of the one before share a sync, up to three of them with the first', async () => {
  const rest: Promise<void>[] = [];
  written = ([record = '']) => {
    if (record < '6') rest.push(loop.put(String(Number(record) + 1)));
    return undefined;
  };
  await loop.put('1');
  while (rest.length < 5) await rest.at(-1);
  await rest.at(-1);
  expect(calls).toEqual([
    ...['append 1', 'append 2', 'append 3', 'append 4', 'sync', 'committed 4 (4 bytes)'],
    ...['append 5', 'append 6', 'sync', 'committed 2 (2 bytes)'],
  ]);
});

test('a put that comes between the write and the sync of another one has a sync of its own otherwise', async () => {
  mayJoin = false;
  await startAndDone();
  expect(calls).toEqual([
    ...['append start', 'sync', 'committed 1 (5 bytes)'],
    ...['append done', 'sync', 'committed 1 (4 bytes)'],
  ]);
});

test('a put that comes between the write and the sync of another one is refused with the other one if the sync fails', async () => {
  failedSync = new Error('no sync');
  const refused = { status: 'rejected', reason: failedSync };
  expect(await startAndDone()).toEqual([refused, refused]);
  expect(calls).toEqual(['append start', 'append done', 'sync', 'committed 0 (0 bytes)']);
});

test('a put that comes between the write and the sync of another one is refused alone if only its write fails', async () => {
  const reason = new Error('no room');
  const outcomes: unknown[] = [];
  written = (records) => {
    if (!records.includes('start')) return reason;
    void loop.put('done').catch((error: unknown) => outcomes.push(error));
    return undefined;
  };
  await loop.put('start');
  await expect.poll(() => outcomes).toEqual([reason]);
  expect(calls).toEqual(['append start', 'append done', 'sync', 'committed 1 (5 bytes)']);
});

test('a put that comes between the write and the sync of another one stays behind the puts and the steps that came before it', async () => {
  const rest: Promise<void>[] = [];
  written = (records) => {
    if (records.includes('first')) rest.push(loop.put('late'));
    return undefined;
  };
  rest.push(loop.put('first'));
  const step = (): Promise<void> => Promise.resolve(void calls.push('step'));
  rest.push(loop.run(step), loop.put('second'));
  await Promise.all(rest);
  await Promise.all(rest); // `late` was added meanwhile
  const order = calls.filter((call) => !call.startsWith('committed') && call !== 'sync');
  expect(order).toEqual(['append first', 'step', 'append second', 'append late']);
});

test('a put that comes between the write and the sync of another one waits for a step that came before it', async () => {
  const rest: Promise<void>[] = [];
  const step = (): Promise<void> => Promise.resolve(void calls.push('step'));
  written = (records) => {
    if (records.includes('first')) rest.push(loop.run(step), loop.put('late'));
    return undefined;
  };
  await loop.put('first');
  await Promise.all(rest);
  const order = calls.filter((call) => !call.startsWith('committed') && call !== 'sync');
  expect(order).toEqual(['append first', 'step', 'append late']);
});

/** A target that fails now and then, writes a part of what it gets, and is slow. */
class RandomTarget implements CommitTarget<string> {
  readonly synced = new Set<string>();
  readonly #random: Random;
  #unsynced: string[] = [];
  #isBroken = false;

  constructor(random: Random) {
    this.#random = random;
  }

  async append(records: readonly string[]): Promise<AppendResult> {
    if (this.#random.chance(0.5)) await nextTurn();
    if (this.#isBroken) return { appended: 0, error: new Error('broken') };
    const hasFailed = this.#random.chance(0.05);
    const appended = hasFailed ? this.#random.below(records.length) : 1 + this.#random.below(records.length);
    this.#unsynced.push(...records.slice(0, appended));
    return hasFailed ? { appended, error: new Error('no write') } : { appended };
  }

  async sync(): Promise<void> {
    if (this.#random.chance(0.7)) await nextTurn();
    const records = this.#unsynced;
    this.#unsynced = [];
    this.#isBroken ||= this.#random.chance(0.03);
    if (this.#isBroken || this.#random.chance(0.05)) throw new Error('no sync');
    for (const record of records) this.synced.add(record);
  }

  joins(): boolean {
    return this.#random.chance(0.8);
  }
}

test('a put resolves when its record was synced, and rejects when it was not, whatever joins and whatever fails', async () => {
  for (let run = 0; run < runs(200); run++) {
    const random = new Random(FIRST_SEED + run);
    const disk = new RandomTarget(random);
    const events = { now: () => NaN, committed: () => undefined };
    const puts = new CommitLoop<string>(disk, true, { ...events, refused: (_, error) => error });
    const outcomes: Promise<void>[] = [];
    for (let nth = 0; nth < 60; nth++) {
      const id = `${nth}`;
      const check = (isDurable: boolean) => (): void => {
        expect(disk.synced.has(id), `put ${id} of run ${run}`).toBe(isDurable);
      };
      outcomes.push(puts.put(id).then(check(true), check(false)));
      if (random.chance(0.4)) await nextTurn();
    }
    await Promise.all(outcomes);
  }
});
