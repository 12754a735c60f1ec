/** The spool as a process that is killed, with an account of every line. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { listen } from '../listen.ts';
import { spawnNode } from '../run-program.ts';
import { until } from '../until.ts';
import { bundleExample } from './support.ts';

const SPOOL = bundleExample('spool');
const BATCH = 20;
/** Lines that the producer has written and the shipper has not confirmed, at most. */
const WINDOW = 200;
const KILLS = 4;

let port: number;
let folder: string;
let isUp: boolean;
let requests: string[][];
beforeEach(async () => {
  folder = folderOfTest();
  [isUp, requests] = [true, []];
  port = await listen((request, response) => {
    void text(request).then((body) => {
      if (isUp) requests.push(body.split('\n').slice(0, -1));
      response.writeHead(isUp ? 204 : 503).end();
    });
  });
});

function startShipper(...options: readonly string[]): ChildProcessWithoutNullStreams {
  const url = `http://127.0.0.1:${port}/`;
  const shipper = spawnNode([SPOOL, '--spool', join(folder, 'spool'), '--forward', url, ...options]);
  shipper.stdin.on('error', () => undefined); // it was killed
  return shipper;
}

/** A run of the shipper: the first line that it was given, and how many of them it has confirmed. */
interface ShipperRun {
  readonly process: ChildProcessWithoutNullStreams;
  readonly first: number;
  confirmed: number;
}

/**
 * A producer that keeps each line until the shipper has confirmed it. After a kill it gives the lines that were not confirmed to the
 * next shipper.
 */
function startRun(first: number): ShipperRun {
  const process = startShipper('--confirm', '--batch', String(BATCH));
  const run: ShipperRun = { process, first, confirmed: 0 };
  createInterface(process.stdout).on('line', (line) => (run.confirmed = Number(line)));
  return run;
}

/** Writes up to a line, as fast as the window allows. */
async function write(run: ShipperRun, last: number): Promise<void> {
  let written = run.first - 1;
  while (written < last && run.process.exitCode === null && run.process.signalCode === null) {
    const end = Math.min(last, run.first - 1 + run.confirmed + WINDOW, written + 25);
    let piece = '';
    while (written < end) piece += `line ${++written} of the shipper from ${run.first}\n`;
    run.process.stdin.write(piece);
    await sleep(2);
  }
}

it('the spool loses no line that it has confirmed when it is killed, and repeats few', async () => {
  const runs: ShipperRun[] = [];
  let first = 1;
  for (let kill = 0; kill < KILLS; kill++) {
    const run = startRun(first);
    runs.push(run);
    const writing = write(run, Infinity);
    // An outage before every second kill, so that it hits a spool that is full or empty by turns.
    isUp = kill % 2 === 0;
    await until('lines are confirmed', () => run.confirmed >= 300);
    await sleep(37 * kill);
    run.process.kill('SIGKILL');
    await once(run.process, 'close');
    await writing;
    first = run.first + run.confirmed;
  }
  isUp = true;
  const last = startRun(first);
  await write(last, first + 500);
  last.process.stdin.end();
  expect(await once(last.process, 'close')).toEqual([0, null]);
  const end = first + 500;

  const arrived = requests.flat().map((line) => {
    const [, number, shipper] = /^line (\d+) of the shipper from (\d+)$/.exec(line) ?? [];
    return { number: Number(number), shipper: Number(shipper) };
  });
  const numbers = new Set(arrived.map(({ number }) => number));
  expect(numbers).toEqual(new Set(Array.from({ length: end }, (_, index) => index + 1)));
  for (const { first, confirmed } of runs) {
    const own = new Set(arrived.filter(({ shipper }) => shipper === first).map(({ number }) => number));
    // What a shipper has confirmed came by way of its spool, and not because the next one was given it too.
    for (let number = first; number < first + confirmed; number++) expect(own).toContain(number);
    expect([...own]).toEqual([...own].sort((a, b) => a - b)); // in order, but for what a kill has repeated
  }
  // A kill repeats the lines whose acknowledgement was not on the disk yet: at most `syncEvery` of them.
  const repeated = arrived.length - new Set(requests.flat()).size;
  expect(repeated).toBeLessThanOrEqual(KILLS * 2_500);
});

it.skipIf(process.platform === 'win32')(
  'the spool keeps what comes through a pipe at SIGTERM, ends with 3, and the next one goes on where it was',
  async () => {
    isUp = false;
    const stopped = startShipper('--confirm');
    const reported = text(stopped.stderr);
    stopped.stdin.write(`${numbered(1, 1_500).join('\n')}\nhalf a li`);
    for await (const line of createInterface(stopped.stdout)) if (Number(line) >= 1_500) break;
    stopped.kill('SIGTERM');
    expect(await once(stopped, 'close')).toEqual([3, null]);
    expect(await reported).toContain('forwarded 0 lines; 1,500 are left in the spool');

    isUp = true;
    const last = startShipper();
    const end = text(last.stderr);
    last.stdin.end('line 1501');
    expect(await once(last, 'close')).toEqual([0, null]);
    expect(await end).toMatch(/1,500 lines are in the spool[^]*forwarded 1,501 lines; 0 are left/);
    expect(requests.flat()).toEqual(numbered(1, 1_501));
  },
);

it('the spool ends with 1 when its folder cannot be opened', async () => {
  const shipper = spawnNode([SPOOL, '--spool', 'package.json', '--forward', 'http://127.0.0.1/']);
  const reported = text(shipper.stderr);

  expect(await once(shipper, 'close')).toEqual([1, null]);
  expect(await reported).toContain("error: queue 'lines': EEXIST");
});

function numbered(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => `line ${first + index}`);
}
