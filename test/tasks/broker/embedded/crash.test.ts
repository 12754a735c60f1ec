import { mkdirSync, rmSync } from 'node:fs';
import { copyFile, link, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker } from 'escapement/testing';
import { expect, onTestFinished, test } from 'vitest';
import { bundleProgram } from '../../../bundle-program.ts';
import { LONG_MS, newTask, QUEUE } from '../../../conformance/broker/support.ts';
import { Random } from '../../../diskqueue/random.ts';
import { folderOfTest } from '../../../folder.ts';
import { runUntilKilled } from '../../../run-program.ts';
import { FIRST_SEED, runs, timeoutOf } from '../../../runs.ts';
import { openFolder } from './open-folder.ts';

/** How long a child works at most before it is killed, in milliseconds. */
const MOST_MS = 150;

/** For each durability: 4 in `npm test`, 10 in `npm run test:all`, 500 with ESCAPEMENT_FUZZ_RUNS=3750. */
const KILLS = runs(40);

const CHILD = bundleProgram(new URL('kill-child.ts', import.meta.url));

test.each(['always', 'os'])(
  'a process that is killed again and again loses no task that was enqueued, and repeats none that was completed (%s)',
  { timeout: 120_000 + KILLS * 30_000 },
  async (durability) => {
    const dataPath = folderOfTest();
    const enqueued = new Set<string>();
    const completed = new Set<string>();
    const running = new Set<string>();
    let called = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const word = kill % 2 === 0 ? 'completed' : 'enqueued';
      const settings = { word, afterMs: Math.random() * MOST_MS };
      for (const line of await runUntilKilled([CHILD, dataPath, durability, `${called}`], settings)) {
        const [word, id = ''] = line.split(' ');
        expect(word, line).not.toBe('damage');
        if (word === 'call') called = Number(id) + 1;
        else if (word === 'enqueued') enqueued.add(id);
        else if (word === 'run') {
          expect(completed, `task ${id} ran again after it was completed`).not.toContain(id);
          running.add(id);
        } else if (word === 'completed') completed.add(id);
      }
      const broker = await EmbeddedBroker.open({ dataPath });
      checkBroker(broker);
      const { counts } = await broker.queueStats(QUEUE);
      const there = await broker.tasks(QUEUE, 'pending', { page: 1, size: 1_000_000 });
      expect(counts).toMatchObject({ pending: there.length, active: 0, retry: 0, archived: 0 });
      const ids = new Set(there.map(({ message }) => message.id));
      expect(ids.size).toBe(there.length);
      for (const id of completed) expect(ids, `task ${id} came back`).not.toContain(id);
      // One whose completion was asked for, and had not settled, may be there or not.
      for (const id of enqueued) if (!running.has(id)) expect(ids, `task ${id} is lost`).toContain(id);
      for (const { message } of there) {
        const { payload, id } = message;
        const isWhole = payload.length > 0 && Buffer.alloc(payload.length, id).equals(payload);
        expect(isWhole, `payload of task ${id}`).toBe(true);
      }
      await broker.close();
    }
    expect(completed.size).toBeGreaterThan(0);
  },
);

/** A task of a broker that is copied while it works. */
interface CopiedTask {
  isEnqueued: boolean;
  isEnding: boolean;
  isCompleted: boolean;
}

/** Enqueues tasks and completes them, so that files are filled, compacted and removed all the time. */
async function work(
  broker: EmbeddedBroker,
  tasks: Map<string, CopiedTask>,
  isOver: () => boolean,
): Promise<void> {
  const random = new Random(FIRST_SEED);
  const enqueue = async (processAtMs: number): Promise<void> => {
    const task = { isEnqueued: false, isEnding: false, isCompleted: false };
    const id = `${tasks.size}`;
    tasks.set(id, task);
    const payload = new Uint8Array(random.chance(0.1) ? 2_000 : random.below(100)).fill(Number(id));
    await broker.enqueue(newTask({ id, payload, processAtMs }));
    task.isEnqueued = true;
  };
  await Promise.all(Array.from({ length: 20 }, () => enqueue(Date.now() + LONG_MS)));
  while (!isOver()) {
    await Promise.all(Array.from({ length: random.below(8) }, () => enqueue(0)));
    const leased = await broker.dequeue(QUEUE, random.below(8), LONG_MS);
    await Promise.all(
      leased.map(async (lease) => {
        const task = tasks.get(lease.message.id) as CopiedTask;
        task.isEnding = true;
        await broker.complete(lease);
        task.isCompleted = true;
      }),
    );
  }
}

/** Takes the files of a folder, in any order. @returns false if one of them was removed meanwhile. */
async function takeFiles(take: typeof copyFile, from: string, to: string, random: Random): Promise<boolean> {
  const names = (await readdir(from)).filter((name) => name.endsWith('.segment'));
  names.sort(() => random.below(3) - 1);
  try {
    for (const name of names) {
      await take(join(from, name), join(to, name));
      if (random.chance(0.3)) await nextTurn();
    }
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOENT' });
    return false;
  }
}

test.each([
  ['are copied', false],
  ['are linked, and copied later', true],
])(
  'a copy of the files of a broker that works has every task that was enqueued before, and none that was completed before, if all files %s',
  { timeout: timeoutOf(50) },
  async (_, isLinked) => {
    const base = folderOfTest();
    const dataPath = join(base, 'live');
    const broker = await EmbeddedBroker.open({ dataPath, durability: 'os', maxBytesPerFile: 4_096 });
    const tasks = new Map<string, CopiedTask>();
    let isOver = false;
    const working = work(broker, tasks, () => isOver);
    onTestFinished(async () => {
      isOver = true;
      await working;
      await broker.close();
    });
    const random = new Random(FIRST_SEED + 1);
    const isCompacted = async (): Promise<boolean> =>
      !(await readdir(dataPath)).includes('tasks.0000000001.segment');
    let whole = 0;
    for (let attempt = 0; whole < runs(50) || !(await isCompacted()); attempt++) {
      for (let turns = random.below(50); turns > 0; turns--) await nextTurn();
      const idsOf = (isWanted: (task: CopiedTask) => boolean): string[] =>
        [...tasks].filter(([, task]) => isWanted(task)).map(([id]) => id);
      const promised = idsOf(({ isEnqueued, isEnding }) => isEnqueued && !isEnding);
      const completed = idsOf(({ isCompleted }) => isCompleted);
      const [links, copy] = [join(base, `links-${attempt}`), join(base, `copy-${attempt}`)];
      mkdirSync(links);
      mkdirSync(copy);
      const isWhole = isLinked
        ? (await takeFiles(link, dataPath, links, random)) && (await takeFiles(copyFile, links, copy, random))
        : await takeFiles(copyFile, dataPath, copy, random);
      if (isWhole) {
        whole++;
        const kept = promised.filter((id) => tasks.get(id)?.isEnding === false);
        const there = await idsIn(copy);
        const lost = kept.filter((id) => !there.has(id));
        const back = completed.filter((id) => there.has(id));
        expect({ lost, back }).toEqual({ lost: [], back: [] });
      }
      rmSync(links, { recursive: true });
      rmSync(copy, { recursive: true });
    }
  },
);

/** Opens a copy, and checks it. @returns the ids of its tasks. */
async function idsIn(dataPath: string): Promise<Set<string>> {
  const broker = await openFolder(dataPath);
  checkBroker(broker);
  const ids = new Set<string>();
  for (const queue of await broker.queues()) {
    for (const state of ['pending', 'scheduled'] as const) {
      for (const { message } of await broker.tasks(queue, state, { page: 1, size: 100_000 })) {
        ids.add(message.id);
        expect(message.payload.every((byte) => byte === Number(message.id) % 256)).toBe(true);
      }
    }
  }
  await broker.close();
  return ids;
}
