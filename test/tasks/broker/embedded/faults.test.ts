import { EmbeddedBroker, type LeasedTask } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import type { File, FileSystem } from '../../../../src/log/file-system.ts';
import { idsIn, idsOf, LONG_MS, newTask, QUEUE } from '../../../conformance/broker/support.ts';
import { FaultyFileSystem, type Call, type Fault } from '../../../diskqueue/faulty-file-system.ts';
import { Random } from '../../../diskqueue/random.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { hostError, WrappedFiles } from '../../../diskqueue/support/wrapped-files.ts';
import { folderOfFile } from '../../../folder.ts';
import { FIRST_SEED, runs } from '../../../runs.ts';
import { codeOf } from '../../support/bench.ts';
import { openFolder } from './open-folder.ts';

const folder = folderOfFile();

/** What fails, and with which errors. */
const CODES: Partial<Record<Call, readonly string[]>> = {
  open: ['EMFILE', 'EACCES'],
  create: ['ENOSPC', 'EMFILE', 'EROFS'],
  list: ['EMFILE'],
  unlink: ['EACCES'],
  syncFolder: ['EIO'],
  read: ['EIO'],
  write: ['ENOSPC', 'EDQUOT', 'EIO'],
  truncate: ['EIO'],
  sync: ['EIO', 'ENOSPC'],
  close: ['EIO'],
};

/** After these the broker goes on by itself. */
const TEMPORARY = new Set(['ENOSPC', 'EDQUOT', 'EMFILE']);

const STEPS = 14;

type Durability = 'always' | 'interval' | 'os';

function open(
  files: FileSystem,
  clock: ManualClock,
  durability: Durability = 'always',
): Promise<EmbeddedBroker> {
  return openFolder(folder, { clock, durability }, files);
}

/** What was asked of a broker, and what it has promised. */
class Work {
  readonly there = new Set<string>();
  /** Tasks whose completion was refused: they may be completed again. */
  readonly unsettled = new Map<string, LeasedTask>();
  readonly refused: unknown[] = [];
  readonly #random: Random;
  #made = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  async do(broker: EmbeddedBroker, steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      await Promise.all(Array.from({ length: this.#random.below(3) }, () => this.enqueue(broker)));
      const leased = await this.#not(broker.dequeue(QUEUE, this.#random.below(3), LONG_MS));
      await Promise.all((leased ?? []).map((task) => this.complete(broker, task)));
    }
  }

  async enqueue(broker: EmbeddedBroker): Promise<void> {
    const id = `${this.#made++}`;
    const payload = Buffer.alloc(this.#random.pick([10, 600, 1_500, 6_000]), id);
    if ((await this.#not(broker.enqueue(newTask({ id, payload })))) !== undefined) this.there.add(id);
  }

  async complete(broker: EmbeddedBroker, task: LeasedTask): Promise<void> {
    const { id, payload } = task.message;
    expect(Buffer.from(payload)).toEqual(Buffer.alloc(payload.length, id));
    const isDone = await this.#not(broker.complete(task).then(() => true));
    if (isDone === true) this.there.delete(id);
    else this.unsettled.set(id, task);
  }

  /** @returns undefined if it was refused. */
  #not<T>(done: Promise<T>): Promise<T | undefined> {
    return done.catch((error: unknown) => {
      this.refused.push(error);
      return undefined;
    });
  }
}

/** Work on a disk that fails; then the disk is well again. */
async function survive(seed: number, durability: Durability, fault: Fault): Promise<void> {
  const disk = new RecordingFileSystem();
  const files = new FaultyFileSystem(disk, fault);
  const clock = new ManualClock({ nowMs: 5_000, wallMs: 1_795_262_400_000 });
  const work = new Work(new Random(seed));
  const broker = await open(files, clock, durability).catch((error: unknown) => {
    work.refused.push(error);
    return undefined;
  });
  if (broker === undefined) expect(disk.handles, 'files stay open').toBe(0);
  else {
    await work.do(broker, STEPS);
    files.heal();
    await clock.advanceAsync(1_000);
    const isRefused = (await codeOf(broker.enqueue(newTask({ id: 'well' })))) !== undefined;
    if (!isRefused) work.there.add('well');
    if (TEMPORARY.has(fault.code)) expect(isRefused, 'it does not go on').toBe(false);
    if (!isRefused) await settleAgain(broker, work, files.failedSyncs > 0);
    await broker.close().catch(() => undefined);
  }
  for (const error of work.refused) {
    expect(error).toMatchObject({
      ...{ code: 'ERR_BROKER_UNAVAILABLE', op: expect.stringContaining('EmbeddedBroker.') as string },
      cause: { code: fault.code, path: expect.stringContaining(folder) as string },
    });
  }
  expect(disk.handles, 'files stay open').toBe(0);
  expect(files.syncedAgain).toEqual([]);
  const after = await open(disk, clock);
  checkBroker(after);
  await after.enqueue(newTask({ id: 'last' }));
  work.there.add('last');
  await clock.advanceAsync(60_000); // a task whose payload the disk has failed to read is tried again then
  expect(new Set(await idsIn(after, 'pending'))).toEqual(work.there);
  await after.close();
}

/** Runs have kept their leases, so what was refused can be repeated; but what was not synced is as if it had not begun. */
async function settleAgain(broker: EmbeddedBroker, work: Work, mayBeLost: boolean): Promise<void> {
  checkBroker(broker);
  for (const [id, task] of work.unsettled) {
    const code = await codeOf(broker.complete(task));
    if (code === undefined) work.there.delete(id);
    else expect([code, mayBeLost]).toEqual(['ERR_LEASE_LOST', true]);
  }
}

async function countCalls(seed: number, durability: Durability): Promise<ReadonlyMap<Call, number>> {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files, new ManualClock(), durability);
  await new Work(new Random(seed)).do(broker, STEPS);
  await broker.close();
  return files.calls;
}

test.each(Object.entries(CODES))(
  'a disk that fails in %s costs nothing that was accepted, and what it refuses is not there (%j)',
  { timeout: 120_000 },
  async (name, codes) => {
    const call = name as Call;
    const random = new Random(FIRST_SEED);
    for (let run = 0; run < runs(10); run++) {
      const seed = FIRST_SEED + run;
      const durability = random.pick(['always', 'os'] as const);
      const count = (await countCalls(seed, durability)).get(call) ?? 0;
      const [code, isLasting] = [random.pick(codes), random.chance(0.5)];
      const fault: Fault = { call, nth: random.below(count + 1), code, isLasting };
      await survive(seed, durability, fault).catch((error: unknown) => {
        throw new Error(`seed ${seed}, ${durability}, ${JSON.stringify(fault)}: ${String(error)}`, {
          cause: error,
        });
      });
    }
  },
);

test.each(['write', 'sync'] as const)(
  'after a %s that fails, changes are refused until the broker is opened again',
  async (call) => {
    const files = new RecordingFileSystem();
    const clock = new ManualClock({ nowMs: 5_000, wallMs: 1_795_262_400_000 });
    let broker = await open(files, clock);
    await broker.enqueue(newTask({ id: 'kept' }));
    await broker.close();
    const fault: Fault = { call, nth: 3, code: 'EIO', isLasting: false };
    broker = await open(new FaultyFileSystem(files, fault), clock);
    let refused = '';
    for (let at = 0; refused === ''; at++) {
      await broker.enqueue(newTask({ id: `${at}` })).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE', cause: { code: 'EIO' } });
        refused = `${at}`;
      });
    }
    expect(await codeOf(broker.enqueue(newTask()))).toBe('ERR_BROKER_UNAVAILABLE');
    await clock.advanceAsync(60_000);
    expect(await codeOf(broker.pause(QUEUE))).toBe('ERR_BROKER_UNAVAILABLE');
    await broker.close().catch(() => undefined);
    broker = await open(files, clock);
    expect(await broker.task(QUEUE, 'kept')).toMatchObject({ state: 'pending' });
    expect(await codeOf(broker.task(QUEUE, refused))).toBe('ERR_TASK_NOT_FOUND');
    await broker.close();
  },
);

test('the starts and the ends of runs that end at once share a sync', async () => {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files, new ManualClock());
  await Promise.all(Array.from({ length: 10 }, () => broker.enqueue(newTask())));
  const before = files.calls.get('sync') ?? 0;
  const leased = await broker.dequeue(QUEUE, 10, LONG_MS);
  await Promise.all(leased.map((task) => broker.complete(task)));
  expect((files.calls.get('sync') ?? 0) - before).toBe(1);
  await broker.close();
});

describe("with 'interval', a change that had resolved and cannot be written", () => {
  const lost = (method: string, code: string): object => ({
    ...{ code: 'ERR_BROKER_UNAVAILABLE', op: `EmbeddedBroker.${method}`, cause: { code } },
    message: expect.stringContaining('changes that were not flushed may be lost') as string,
  });

  test('a lost change is reported by the next flush, and by no other one, when the disk is well again', async () => {
    const clock = new ManualClock();
    const fault: Fault = { call: 'write', nth: 2, code: 'ENOSPC', isLasting: false };
    const files = new FaultyFileSystem(new RecordingFileSystem(), fault);
    const broker = await open(files, clock, 'interval');
    await broker.enqueue(newTask());
    await clock.advanceAsync(1_000);
    expect(files.failures).toBe(1);
    await clock.advanceAsync(1_000);
    await broker.enqueue(newTask());
    await expect(broker.flush()).rejects.toMatchObject(lost('flush', 'ENOSPC'));
    await broker.flush();
    expect((await broker.queueStats(QUEUE)).counts.pending).toBe(1);
    await broker.close();
  });

  test.each(['write', 'sync'] as const)('close rejects if the last %s of changes fails', async (call) => {
    const fault: Fault = { call, nth: 2, code: 'EIO', isLasting: false };
    const files = new FaultyFileSystem(new RecordingFileSystem(), fault);
    const clock = new ManualClock();
    const broker = await open(files, clock, 'interval');
    await broker.enqueue(newTask());
    const error = { op: 'EmbeddedBroker.close', cause: { code: 'EIO' } };
    await expect(broker.close()).rejects.toMatchObject(error);
    expect(clock.pendingWakeups).toBe(0);
  });
});

test("with 'os', a flush whose sync fails rejects", async () => {
  const fault: Fault = { call: 'sync', nth: 2, code: 'EIO', isLasting: false };
  const broker = await open(new FaultyFileSystem(new RecordingFileSystem(), fault), new ManualClock(), 'os');
  await broker.enqueue(newTask());
  const error = { code: 'ERR_BROKER_UNAVAILABLE', op: 'EmbeddedBroker.flush', cause: { code: 'EIO' } };
  await expect(broker.flush()).rejects.toMatchObject(error);
  await broker.close().catch(Boolean);
});

test('a task whose payload the disk fails to read is tried again a minute later, and the others do not wait for it', async () => {
  const disk = new RecordingFileSystem();
  const clock = new ManualClock({ nowMs: 5_000, wallMs: 1_795_262_400_000 });
  const payload = Buffer.alloc(2_000, 'unreadable');
  const files = new UnreadableFiles(disk, payload);
  let broker = await open(files, clock);
  await broker.enqueueMany([newTask({ id: 'unreadable', payload }), newTask({ id: 'other' })]);
  expect(idsOf(await broker.dequeue(QUEUE, 2, LONG_MS))).toEqual(['other']);
  expect(await codeOf(broker.task(QUEUE, 'unreadable'))).toBe('ERR_BROKER_UNAVAILABLE');
  checkBroker(broker);
  await broker.close();
  broker = await open(disk, clock);
  await checkBrokerLog(broker);
  const { state, message } = await broker.task(QUEUE, 'unreadable');
  expect([state, message.retried, message.lastError]).toEqual(['retry', 0, expect.stringContaining('EIO')]);
  await clock.advanceAsync(60_000);
  const [, again] = await broker.dequeue(QUEUE, 2, LONG_MS); // the first one was active
  expect(Buffer.from(again?.message.payload ?? [])).toEqual(payload);
  await broker.close();
});

/** A part of these files cannot be read. */
class UnreadableFiles extends WrappedFiles {
  readonly #part: Buffer;

  constructor(files: FileSystem, part: Buffer) {
    super(files);
    this.#part = part;
  }

  protected override wrap(path: string, file: File): File {
    return {
      ...super.wrap(path, file),
      read: async (buffer, position) => {
        const count = await file.read(buffer, position);
        if (buffer.includes(this.#part)) throw hostError('EIO', 'read', path);
        return count;
      },
    };
  }
}
