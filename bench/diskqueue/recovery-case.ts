/** Opening what a killed process has left. */
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import type { ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import { putAll } from './callers.ts';
import { writeStream } from './file-stores.ts';
import { levelUnsyncedBatched } from './level-stores.ts';
import { lmdbUnsynced } from './lmdb-stores.ts';
import { contest, withStore, type MessageStore, type OpenStore, type StoreKind } from './message-store.ts';
import { OrderCheck } from './messages.ts';
import { oursOs } from './our-stores.ts';

const TIME = 'time';
const CALLERS = 64;

/** Opening it is reading it. */
const readToTheEnd: StoreKind = {
  ...writeStream,
  name: 'fs.ReadStream',
  role: 'baseline',
  note: 'reads the file that fs.WriteStream wrote from its beginning to its end, and checks nothing.',
};

async function play(open: OpenStore, folder: string, size: number): Promise<ScenarioOutcome> {
  const image = `${folder}/image`;
  const live = `${folder}/live`;
  await mkdir(live);
  await withStore(open, live, async (store) => {
    await putAll(store, 0, size, CALLERS);
    await copyFiles(live, image); // while it is open: what a process leaves that is killed now
  });
  const startMs = performance.now();
  const store = await openImage(open, image);
  const elapsedMs = performance.now() - startMs;
  return { values: { [TIME]: elapsedMs }, problem: await checkAndClose(store, size) };
}

async function copyFiles(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.isDirectory()) await copyFiles(`${from}/${entry.name}`, `${to}/${entry.name}`);
    else if (entry.isFile()) await copyFile(`${from}/${entry.name}`, `${to}/${entry.name}`);
  }
}

async function openImage(open: OpenStore, image: string): Promise<MessageStore> {
  if (open === readToTheEnd.open) {
    const stream = createReadStream(`${image}/messages`, { highWaterMark: 128 * 1024 });
    await stream.forEach(() => undefined);
  }
  return open(image);
}

async function checkAndClose(store: MessageStore, size: number): Promise<string | undefined> {
  const check = new OrderCheck(size);
  await store.take(size, check.see);
  await store.close();
  return check.problem();
}

export const recoveryCase: ScenarioCase = {
  kind: 'scenario',
  name: 'open what a killed process has left, a file of 100 MiB',
  note: 'The queue reads its last file and checks every message of it. What it reads lies in the host’s memory.',
  size: { full: 370_000, quick: 20_000, of: 'messages' },
  rounds: 3,
  metrics: [{ name: TIME, unit: 'ms' }],
  contestants: contest([readToTheEnd, levelUnsyncedBatched, lmdbUnsynced, oursOs], play),
};
