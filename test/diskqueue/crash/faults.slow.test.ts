import { describe, expect, test } from 'vitest';
import { EscapementError } from '../../../src/core/errors.ts';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import { folderOfFile } from '../../folder.ts';
import { CALLS, FaultyFileSystem, type Call, type Fault } from '../faulty-file-system.ts';
import { Random } from '../random.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import { orderedRemains, RecordingFileSystem, someRemains } from '../recording-file-system.ts';
import { inCase, openQueue, problemsOf, receiveAll, type Setup } from './open-queue.ts';
import { Workload } from './workload.ts';

const folder = folderOfFile();

const STEPS = 30;

const CODES: Record<Call, readonly string[]> = {
  open: ['EMFILE', 'EACCES'],
  create: ['ENOSPC', 'EMFILE', 'EACCES'],
  list: ['EMFILE'],
  size: ['EIO'],
  rename: ['EIO', 'EACCES'],
  unlink: ['EACCES'],
  syncFolder: ['EIO'],
  read: ['EIO'],
  write: ['ENOSPC', 'EIO'],
  truncate: ['EIO'],
  sync: ['EIO', 'ENOSPC'],
  close: ['EIO'],
};

/** Work on a disk that fails; then the disk is well again. */
async function survive(setup: Setup, seed: number, fault: Fault): Promise<void> {
  const { durability } = setup;
  const disk = new RecordingFileSystem();
  const files = new FaultyFileSystem(disk, fault);
  const random = new Random(seed);
  const rejected = (step: string, error: unknown): void => {
    const isRight = error instanceof EscapementError && error.code === 'ERR_QUEUE_IO' && files.failures > 0;
    if (!isRight) throw new Error(`${step} rejects`, { cause: error });
  };
  const notOpened = (): void => {
    expect(disk.handles, 'files stay open when a queue does not').toBe(0);
    files.heal();
  };
  const now = (): number => disk.log.length;
  const keepsRefused = fault.call === undefined && fault.isLasting;
  const workload = new Workload(files, folder, setup, random, now, { rejected, notOpened, keepsRefused });
  await workload.run(STEPS, (queue) => {
    files.heal();
    return putAndReceive(workload, queue);
  });
  expect(disk.handles, 'files stay open').toBe(0);
  expect(files.syncedAgain).toEqual([]);
  expect([...disk.disk.keys()].filter((path) => /\.(damaged|bad)$/.test(path))).toEqual([]);
  expect(await problemsOf(disk, folder)).toEqual([]);
  // What could be read already, and then could not be synced, is on the disk or not: `flush` and `close` have said so.
  if (durability === 'always' || files.failedSyncs === 0) await checkPowerCut(disk, workload, setup, random);
  const delivered = await drain(disk, setup);
  if (fault.call === undefined) workload.history.check(delivered, Number.MAX_SAFE_INTEGER);
  else workload.history.checkAll(delivered);
}

/** The disk is well: the queue is, too. */
async function putAndReceive(workload: Workload, queue: DiskQueue): Promise<void> {
  const before = workload.history.puts.length;
  await workload.put(queue);
  expect(workload.history.puts[before]?.rejectedAt, 'a put is refused by a healthy disk').toBeUndefined();
  const [first] = await receiveAll(queue);
  expect(first).toBeDefined();
}

async function drain(disk: RecordingFileSystem, setup: Setup): Promise<Uint8Array[]> {
  const queue = await openQueue(disk, folder, setup);
  const { depth } = queue;
  const deliveries = await receiveAll(queue);
  expect(depth).toBe(deliveries.length);
  for (const delivery of deliveries) delivery.ack();
  expect(queue.depth).toBe(0);
  await queue.close();
  return deliveries.map(({ data }) => data);
}

/** What was promised in spite of the fault holds. */
async function checkPowerCut(
  disk: RecordingFileSystem,
  { history }: Workload,
  setup: Setup,
  random: Random,
): Promise<void> {
  const point = random.below(disk.log.length + 1);
  const remains = setup.format === 'nsq' ? orderedRemains(random) : someRemains(random);
  const left = new RecordingFileSystem(disk.afterPowerCut(point, remains));
  expect(await problemsOf(left, folder)).toEqual([]);
  history.check(await drain(left, setup), point);
}

async function callsWithoutFault(setup: Setup, seed: number): Promise<ReadonlyMap<Call, number>> {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  await new Workload(files, folder, setup, new Random(seed), () => 0).run(STEPS);
  return files.calls;
}

/** Every call of that kind fails once, and from then on; how is left to the seed. */
function* faultsOf(call: Call | undefined, count: number, random: Random): Generator<Fault> {
  for (let nth = 0; nth < count; nth++) {
    const code = random.pick(CODES[call ?? 'sync']);
    yield { call, nth, code, isLasting: false };
    yield { call, nth, code, isLasting: true };
  }
}

describe.each([
  ['always', 'checked'],
  ['os', 'checked'],
  ['always', 'nsq'],
  ['os', 'nsq'],
] as const)('a disk that fails, with durability %s and format %s', (durability, format) => {
  const RUNS = runs(16);

  test.each([...CALLS.map((call) => [`calls of ${call}`, call] as const), ['any call', undefined] as const])(
    'a disk that fails in %s costs nothing that was promised',
    { timeout: 60_000 + RUNS * 2_000 },
    async (_, call) => {
      const random = new Random(FIRST_SEED);
      for (let done = 0, seed = FIRST_SEED; done < RUNS; seed++) {
        const setup: Setup = { durability, format, maxBytesPerFile: random.pick([256, 700, 5_000]) };
        const calls = await callsWithoutFault(setup, seed);
        const count =
          call === undefined ? [...calls.values()].reduce((a, b) => a + b) : (calls.get(call) ?? 0);
        const faults = [...faultsOf(call, count, random)];
        for (let i = 0; i < 8 && done < RUNS && faults.length > 0; i++, done++) {
          const fault = faults.splice(random.below(faults.length), 1)[0] as Fault;
          await inCase(`seed ${seed}, ${JSON.stringify({ setup, fault })}`, () =>
            survive(setup, seed, fault),
          );
        }
        if (faults.length === 0) done++;
      }
    },
  );
});
