import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Journal } from './journal.ts';
import type { SettingsTree } from './settings-tree.ts';

/** What the scenes play with. */
export interface Stage {
  readonly tree: SettingsTree;
  readonly sourceDirectory: string;
  readonly outputDirectory: string;
  readonly journal: Journal;
  readonly durationMs: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
}

export const BROKEN = 'broken.json';
export const BLOCKED = 'blocked.json';
const BLOCKED_OUTPUT = 'blocked.conf';
const TAMPERED = 'tampered.json';
const TAMPERED_OUTPUT = 'tampered.conf';
/** Saved over and over, in one step each time. */
export const SAVED = ['hot/gateway.json', 'hot/search.json', 'hot/mail.json'];
/** Written over and over, in place: who reads meanwhile finds half of it, which is a syntax error. */
const WRITTEN = ['hot/log.json'];
const CHANGES_PER_BURST = 50;
const PAUSE_MS = 100;

/** What is there before the controller starts. */
export async function setTheStage({ tree }: Stage): Promise<void> {
  const teams = ['a', 'b', 'c'].flatMap((team) =>
    Array.from({ length: 10 }, (_, index) => `teams/${team}/app-${index}.json`),
  );
  for (const path of [...teams, BROKEN, TAMPERED, ...SAVED, ...WRITTEN]) await tree.write(path);
}

/** Everything at once, for `durationMs` or as long as the scenes take. At the end every file is as it should be. */
export async function play(stage: Stage): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([stage.signal, failed.signal]);
  const scenes = [bursts, breakAndRepair, blockAndClear, tamper, move].map((scene) =>
    scene({ ...stage, signal }).catch((error: unknown) => {
      failed.abort(error);
    }),
  );
  await Promise.all(scenes);
  stage.signal.throwIfAborted();
  failed.signal.throwIfAborted();
}

async function bursts({ tree, durationMs, signal }: Stage): Promise<void> {
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs) {
    await Promise.all([
      ...SAVED.map((path) => often(() => tree.save(path))),
      ...WRITTEN.map((path) => often(() => tree.write(path))),
    ]);
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

async function often(change: () => Promise<void>): Promise<void> {
  for (let times = 0; times < CHANGES_PER_BURST; times++) await change();
}

async function breakAndRepair({ tree, journal, signal, say }: Stage): Promise<void> {
  const brokenMs = performance.now();
  await tree.save(BROKEN, '{ "port": }');
  say(`${BROKEN} has a syntax error now`);
  const { endMs, retries } = await journal.until(BROKEN, 'dropped', brokenMs, signal);
  say(`${BROKEN} is given up after ${retries} retries, ${(endMs - brokenMs).toFixed(0)} ms`);
  const repairedMs = performance.now();
  await tree.save(BROKEN);
  const healed = await journal.until(BROKEN, 'written', repairedMs, signal);
  say(`${BROKEN} is repaired, and rendered ${(healed.endMs - repairedMs).toFixed(0)} ms later`);
}

async function blockAndClear({ tree, outputDirectory, journal, signal, say }: Stage): Promise<void> {
  const output = join(outputDirectory, BLOCKED_OUTPUT);
  await mkdir(output, { recursive: true });
  await tree.save(BLOCKED);
  say(`${BLOCKED_OUTPUT} is a directory, where a file is to be written`);
  await journal.until(BLOCKED, 'dropped', 0, signal);
  const clearedMs = performance.now();
  await rmdir(output);
  await tree.save(BLOCKED);
  await journal.until(BLOCKED, 'written', clearedMs, signal);
  say(`${BLOCKED_OUTPUT} is a file, after ${BLOCKED} was given up and saved again`);
}

/** Nobody watches the output directory. */
async function tamper({ outputDirectory, journal, signal, say }: Stage): Promise<void> {
  await journal.until(TAMPERED, 'written', 0, signal);
  const removedMs = performance.now();
  await rm(join(outputDirectory, TAMPERED_OUTPUT));
  say(`${TAMPERED_OUTPUT} is removed behind the controller's back`);
  const { endMs } = await journal.until(TAMPERED, 'written', removedMs, signal);
  say(
    `${TAMPERED_OUTPUT} is back: the resync has found it missing after ${(endMs - removedMs).toFixed(0)} ms`,
  );
}

/** What watchers get wrong: directories that come, move and go, and files that are replaced. */
async function move({ tree, durationMs, signal, say }: Stage): Promise<void> {
  const pause = async (): Promise<void> => sleep(durationMs / 8, undefined, { signal });
  await pause();
  await tree.write('new/in/new/directories.json');
  say('a file in three new directories');
  await pause();
  await tree.move('teams/a', 'teams/moved');
  await tree.write('teams/moved/app-0.json');
  say('a directory is moved, and one of its files written');
  await pause();
  await tree.save('teams/b/app-1.json');
  await tree.write('teams/b/app-1.json');
  await tree.move('teams/b/app-2.json', 'teams/renamed.json');
  say('a file is replaced and then written in place, another one renamed');
  await pause();
  await tree.remove('teams/c');
  await tree.write('teams/c/app-0.json');
  say('a directory is removed and made again');
  await pause();
  await tree.remove('teams/b');
  say('a directory is removed for good');
}
