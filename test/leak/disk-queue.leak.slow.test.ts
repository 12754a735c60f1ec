import { getEventListeners, setMaxListeners } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { ManualClock } from 'escapement';
import { DiskQueue, OverflowQueue, type Delivery, type DiskQueueOptions } from 'escapement/diskqueue';
import { describe, expect, test } from 'vitest';
import { hostError } from '../diskqueue/support/wrapped-files.ts';
import {
  bytes,
  drain,
  FORMATS,
  openQueue,
  openRecorded,
  putAll,
  receiveMany,
  settled,
  temporaryFolder,
} from '../diskqueue/support/queues.ts';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { runProgram } from '../run-program.ts';
import { throwing } from '../timer/support/errors.ts';
import { until } from '../until.ts';
import { heldBytes, isCollected } from './collect.ts';

const MIB = 1024 * 1024;

/** What this process has open: files, folders and sockets of queues. */
function openFiles(folder: string): string[] {
  try {
    return readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        const target = readlinkSync(`/proc/self/fd/${fd}`);
        return target.startsWith(folder) || target.startsWith('socket:') ? [target] : [];
      } catch {
        return []; // the one that was reading the list
      }
    });
  } catch {
    return []; // another system
  }
}

/** What is active and was not before; what the test runner itself has ended meanwhile is its own business. */
function newSince(resources: readonly string[]): string[] {
  const known = [...resources];
  return process.getActiveResourcesInfo().filter((resource) => {
    const at = known.indexOf(resource);
    if (at >= 0) known.splice(at, 1);
    return at < 0;
  });
}

describe.each(FORMATS)('%s: after close', (format) => {
  /** Uses everything that a queue can do. */
  async function use(queue: DiskQueue, signal: AbortSignal): Promise<Delivery[]> {
    for (let i = 0; i < 50; i++) await queue.put(bytes(`message ${i}`));
    const deliveries = await receiveMany(queue, 10);
    for (const delivery of deliveries.slice(0, 5)) delivery.ack();
    deliveries[7]?.nack();
    await queue.peek();
    await queue.flush();
    for await (const data of queue) if (data.length > 0) break;
    setMaxListeners(0, signal);
    const waiting = Promise.allSettled(Array.from({ length: 60 }, () => queue.receive({ signal })));
    await queue.empty();
    await queue.put(bytes('last'));
    void waiting;
    return deliveries;
  }

  test('a closed queue leaves no file, socket, timer or listener', async () => {
    const dataPath = temporaryFolder();
    const { signal } = new AbortController();
    const clock = new ManualClock();
    const [files, resources] = [openFiles(dataPath), process.getActiveResourcesInfo()];
    for (const end of ['close', 'close', 'delete'] as const) {
      const options: DiskQueueOptions = { name: 'q', dataPath, format, clock, maxBytesPerFile: 300 };
      const queue = await DiskQueue.open({ ...options, durability: 'interval' });
      const kept = await use(queue, signal);
      await queue[end]();
      await until('nothing is left', () =>
        isDeepStrictEqual([openFiles(dataPath), newSince(resources)], [files, []]),
      );
      expect([getEventListeners(signal, 'abort').length, clock.pendingWakeups]).toEqual([0, 0]);
      expect(kept).toHaveLength(10);
    }
  });

  test('an open that is refused leaves no file, socket, timer or listener', async () => {
    const dataPath = temporaryFolder();
    const owner = await DiskQueue.open({ name: 'q', dataPath, format });
    const files = openFiles(dataPath);
    for (let i = 0; i < 5; i++) await DiskQueue.open({ name: 'q', dataPath, format }).catch(() => undefined);
    await expect.poll(() => openFiles(dataPath)).toEqual(files); // the owner closes its ends of the connections later
    await owner.close();
  });

  test('the queue is collectable, although its deliveries, a signal and its metrics are kept', async () => {
    const dataPath = temporaryFolder();
    const { signal } = new AbortController();
    const metrics = new RecordingMetrics();
    const kept: unknown[] = [];
    const useAndClose = async (): Promise<WeakRef<DiskQueue>> => {
      const queue = await DiskQueue.open({ name: 'q', dataPath, format, metrics });
      kept.push(...(await use(queue, signal)));
      await queue.close();
      return new WeakRef(queue);
    };
    const queue = await useAndClose();
    await settled();
    kept.splice(0);
    expect(await isCollected(queue)).toBe(true);
    expect([metrics.readers.size, signal.aborted]).toEqual([0, false]);
  });

  test('memory does not grow from one queue to the next', async () => {
    const dataPath = temporaryFolder();
    const { signal } = new AbortController();
    const openAndClose = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        const queue = await DiskQueue.open({ name: 'q', dataPath, format, durability: 'os' });
        await use(queue, signal);
        await queue.close();
      }
    };
    await openAndClose(10);
    const before = await heldBytes();
    await openAndClose(40);
    expect((await heldBytes()) - before).toBeLessThan(2 * MIB);
  });
});

describe.each(FORMATS)('%s: memory does not grow with the depth', (format) => {
  test('100 000 messages take no memory while they are put, while they wait, and after they were acknowledged', async () => {
    const COUNT = 100_000;
    const AT_ONCE = 2_000;
    const message = Buffer.alloc(100, 'm');
    const dataPath = temporaryFolder();
    const options = { format, durability: 'os', maxBytesPerFile: 4 * MIB } as const;
    const queue = await DiskQueue.open({ name: 'q', dataPath, ...options });
    await queue.put(message);
    await drain(queue);
    const before = await heldBytes();
    const rssBefore = process.memoryUsage().rss;
    for (let i = 0; i < COUNT; i += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => queue.put(message)));
    }
    expect(queue.depth).toBe(COUNT);
    const whileFull = await heldBytes();
    for (let i = 0; i < COUNT; i++) (await queue.receive()).ack();
    expect(queue.depth).toBe(0);
    const whenEmpty = await heldBytes();
    const rss = process.memoryUsage().rss;
    await queue.flush();
    expect(readdirSync(dataPath).length).toBeLessThan(6);
    await queue.close();
    expect(whileFull - before).toBeLessThan(3 * MIB);
    expect(whenEmpty - before).toBeLessThan(3 * MIB);
    expect(rss - rssBefore).toBeLessThan(100 * MIB); // the messages alone are 10 MB, and their records 13
  });

  test('100 000 messages that are acknowledged behind one that is not take no memory', async () => {
    const queue = await openQueue({ format, durability: 'os' });
    await putAll(queue, ['held']);
    const held = await queue.receive();
    const before = await heldBytes();
    for (let i = 0; i < 50; i++) {
      await Promise.all(Array.from({ length: 2_000 }, () => queue.put(Buffer.alloc(10))));
      for (const delivery of await receiveMany(queue, 2_000)) delivery.ack();
    }
    expect((await heldBytes()) - before).toBeLessThan(3 * MIB);
    expect(queue.depth).toBe(1);
    held.ack();
    expect(queue.depth).toBe(0);
  });

  test('an OverflowQueue with memory for 100 holds 50 000 messages on the disk', async () => {
    const COUNT = 50_000;
    const dataPath = temporaryFolder();
    const backend = await DiskQueue.open({ name: 'q', dataPath, format, durability: 'os' });
    const queue = new OverflowQueue({ memorySize: 100, backend });
    const before = await heldBytes();
    for (let i = 0; i < COUNT; i += 1_000) {
      await Promise.all(Array.from({ length: 1_000 }, () => queue.put(Buffer.alloc(100))));
    }
    const whileFull = await heldBytes();
    for (let i = 0; i < COUNT; i++) (await queue.receive()).ack();
    const whenEmpty = await heldBytes();
    await queue.close();
    expect(whileFull - before).toBeLessThan(3 * MIB);
    expect(whenEmpty - before).toBeLessThan(3 * MIB);
  });

  test('memory does not grow with the refusals of a disk that takes no acknowledgements', async () => {
    const { files, clock, queue } = await openRecorded({ format, durability: 'os', syncEvery: 3 });
    await putAll(queue, Array<string>(3_000).fill('message'));
    const deliveries = await receiveMany(queue, 3_000);
    files.before = throwing(hostError('ENOSPC', 'write'));
    const before = await heldBytes();
    for (const delivery of deliveries) {
      delivery.ack();
      await nextTurn();
    }
    clock.advance(10_000);
    expect((await heldBytes()) - before).toBeLessThan(MIB);
    files.before = () => undefined;
    await queue.close();
    expect([queue.depth, clock.pendingWakeups]).toEqual([0, 0]);
  });
});

describe.each(FORMATS)('%s: after its queues', (format) =>
  test('a process ends by itself when its queues are closed, or idle', () => {
    const { status, stdout, stderr } = runProgram(`
      import { DiskQueue } from 'escapement/diskqueue';
      const open = (name) => DiskQueue.open({ name, dataPath: ${JSON.stringify(temporaryFolder())}, format: '${format}', syncTimeoutMs: 20 });
      const [closed, idle] = [await open('closed'), await open('idle')];
      for (const queue of [closed, idle]) {
        await queue.put(Buffer.from('a'));
        (await queue.receive()).ack();
        queue.receive().catch((error) => console.log(error.code));
      }
      await closed.close();
    `);
    expect([status, stdout.trim(), stderr]).toEqual([0, 'ERR_QUEUE_CLOSED', '']);
  }),
);
