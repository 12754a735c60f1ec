import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkSegments } from 'escapement/testing';
import { expect, test } from 'vitest';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import { bundleProgram } from '../../bundle-program.ts';
import { Random } from '../random.ts';
import { runUntilKilled } from '../../run-program.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import { FORMATS, type Format } from '../support/queues.ts';
import { messageOf } from './history.ts';
import { openQueue, receiveAll } from './open-queue.ts';

/** How long a child works at most before it is killed, in milliseconds: its first syncs are in it. */
const MOST_MS = 80;

const CHILD = bundleProgram(new URL('kill-child.ts', import.meta.url));

/** What the children have said. */
class Ledger {
  nextId = 0;
  readonly #settled = new Set<number>();
  readonly #acked = new Set<number>();
  readonly #flushed = new Set<number>();
  readonly #format: Format;

  constructor(format: Format) {
    this.#format = format;
  }

  /** What one child has said before it died. */
  read(lines: readonly string[]): void {
    const acks: number[] = [];
    for (const line of lines) {
      const [word, number] = line.split(' ');
      const id = Number(number);
      if (word === 'call') this.nextId = id + 1;
      else if (word === 'put') this.#settled.add(id);
      else if (word === 'ack') acks.push(id);
      else if (word === 'flush') for (const acked of acks.slice(0, id)) this.#flushed.add(acked);
      else expect(line).toBe('open');
    }
    for (const id of acks) this.#acked.add(id);
  }

  /** Messages that were acknowledged, and come again, are waited for again. */
  check(ids: readonly number[]): void {
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    for (const id of ids) {
      expect(id).toBeLessThan(this.nextId);
      expect(this.#isGone(id), `message ${id} came back`).toBe(false);
      this.#flushed.delete(id);
      this.#acked.delete(id);
      this.#settled.add(id);
    }
    const there = new Set(ids);
    for (const id of this.#settled) {
      if (id < (ids[0] ?? Infinity)) this.#flushed.add(id); // the queue is closed in order after this
      expect(there.has(id) || this.#acked.has(id), `message ${id} is lost`).toBe(true);
    }
  }

  acked(id: number, isKept: boolean): void {
    this.#acked.add(id);
    if (isKept) this.#flushed.add(id);
  }

  /** In NSQ's format only what is acknowledged from the first message on is kept; the rest may come again, also later. */
  #isGone(id: number): boolean {
    if (!this.#flushed.has(id)) return false;
    return (
      this.#format === 'checked' ||
      [...this.#settled].every((other) => other > id || this.#flushed.has(other))
    );
  }
}

async function checkQueue(folder: string, format: Format, ledger: Ledger, random: Random): Promise<void> {
  await checkSegments(folder);
  const queue = await openQueue(hostFileSystem, folder, { format });
  const { depth } = queue;
  const deliveries = await receiveAll(queue);
  const ids = deliveries.map(({ data }) => {
    const id = Buffer.from(data).readUInt32LE(0);
    expect(Buffer.from(data).equals(messageOf(id, data.length)), `message ${id} is wrong`).toBe(true);
    return id;
  });
  expect(depth).toBe(ids.length);
  ledger.check(ids);
  const share = random.pick([0, 0.3, 1]);
  let isFromFirst = true;
  for (const [i, delivery] of deliveries.entries()) {
    if (random.chance(share)) {
      delivery.ack();
      // In NSQ's format one that is behind another comes again with it, as if it had not been acknowledged.
      ledger.acked(ids[i] as number, format === 'checked' || isFromFirst);
    } else isFromFirst = false;
  }
  await queue.close();
  await checkSegments(folder);
}

const KILLS = runs(7);

const CASES = FORMATS.flatMap((format) =>
  (['always', 'interval', 'os'] as const).map((durability) => [format, durability] as const),
);

test.concurrent.for(CASES)(
  'a %s queue with durability %s keeps what it has promised when its process is killed, in real time',
  { timeout: 120_000 + KILLS * 30_000 },
  async ([format, durability]) => {
    const folder = mkdtempSync(join(tmpdir(), 'escapement-kill-'));
    const random = new Random(FIRST_SEED);
    const ledger = new Ledger(format);
    try {
      for (let i = 0; i < KILLS; i++) {
        const args = [folder, format, durability, String(random.below(1e9)), String(ledger.nextId)];
        ledger.read(await runUntilKilled([CHILD, ...args], { afterMs: random.below(MOST_MS) }));
        await checkQueue(folder, format, ledger, random);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
