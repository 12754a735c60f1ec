import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker } from 'escapement/testing';
import { expect, onTestFinished, test } from 'vitest';
import { QUEUE } from '../../../conformance/broker/support.ts';
import { runs } from '../../../runs.ts';

/** How long a child works at most before it is killed, in milliseconds. */
const MOST_MS = 150;

const CHILD = fileURLToPath(new URL('kill-child.ts', import.meta.url));
const TYPESCRIPT = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** Runs a child until it is killed, some time after its first task was enqueued. @returns what it has printed, whole lines. */
async function runAndKill(dataPath: string, durability: string, first: number): Promise<string[]> {
  const child = spawn(process.execPath, ['--import', TYPESCRIPT, CHILD, dataPath, durability, `${first}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  let isDoomed = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (isDoomed || !output.includes('enqueued')) return;
    isDoomed = true;
    setTimeout(() => child.kill('SIGKILL'), Math.random() * MOST_MS);
  });
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.on('close', (...ended) => {
      resolve(ended);
    });
  });
  expect([code, signal], output).toEqual([null, 'SIGKILL']);
  return output.split('\n').slice(0, -1);
}

test.each(['always', 'os'])(
  'a process that is killed again and again loses no task that was enqueued, and repeats none that was completed (%s)',
  { timeout: 300_000 },
  async (durability) => {
    const dataPath = mkdtempSync(join(tmpdir(), 'escapement-kill-'));
    onTestFinished(() => {
      rmSync(dataPath, { recursive: true });
    });
    const enqueued = new Set<string>();
    const completed = new Set<string>();
    const running = new Set<string>();
    let called = 0;
    for (let kill = 0; kill < runs(20); kill++) {
      for (const line of await runAndKill(dataPath, durability, called)) {
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
        expect(Buffer.from(payload).equals(Buffer.alloc(payload.length, id)), `payload of task ${id}`).toBe(
          true,
        );
        expect(payload.length > 0).toBe(true);
      }
      await broker.close();
    }
    expect(completed.size).toBeGreaterThan(0);
  },
);
