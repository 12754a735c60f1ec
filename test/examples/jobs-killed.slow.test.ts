/** The shop as a process that is killed while its tasks are in a folder or in Redis, with an account of every order. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { listen } from '../listen.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import { until } from '../until.ts';
import { spawnNode } from '../run-program.ts';
import { bundleExample } from './support.ts';

const JOBS = bundleExample('jobs');
const WORKERS = 4;
const ORDERS_PER_KILL = 50;

/** Of the payment provider. */
let port: number;
/** How often the provider was asked to charge an order. */
let charges: Map<string, number>;
beforeEach(async () => {
  charges = new Map();
  port = await listen((request, response) => {
    void json(request).then(async (body) => {
      const { order } = body as { order: string };
      charges.set(order, (charges.get(order) ?? 0) + 1);
      await sleep(30);
      response.end(`paid ${order}`);
    });
  });
});

interface RunningShop {
  readonly process: ChildProcessWithoutNullStreams;
  readonly url: string;
  /** What it prints from now on. */
  readonly lines: string[];
}

async function startShop(...broker: string[]): Promise<RunningShop> {
  const payments = `http://127.0.0.1:${port}/`;
  const options = ['--payments', payments, ...broker, '--workers', String(WORKERS)];
  const process = spawnNode([JOBS, ...options]);
  const lines: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(process.stdout).on('line', (line) => {
      lines.push(line);
      const address = /a shop at (.*)\/orders/.exec(line)?.[1];
      if (address !== undefined) resolve(address);
    });
    process.once('close', () => {
      reject(new Error(`the shop ended early: ${lines.join('\n')}`));
    });
  });
  return { process, url, lines };
}

/** Sends orders until the shop is gone, and notes the ids of those that it has accepted. */
async function sendOrders(url: string, prefix: string, accepted: string[]): Promise<void> {
  for (let number = 1; ; number++) {
    const id = `${prefix}-${number}`;
    const body = JSON.stringify({ id, customer: 'ada', cents: 4_200 });
    try {
      const { status } = await fetch(`${url}/orders`, { method: 'POST', body });
      if (status === 202) accepted.push(id);
    } catch {
      return;
    }
  }
}

const BROKERS = [
  ['a folder', 2, () => Promise.resolve(['--folder', join(folderOfTest(), 'shop')])],
  // What was running at a kill is looked for once a minute.
  ...(inject('redis').isThere ? [['Redis', 3, async () => ['--redis', await redis()]] as const] : []),
] as const;

async function redis(): Promise<string> {
  const { url, dispose } = await freshDatabase();
  onTestFinished(dispose);
  return url;
}

describe.each(BROKERS)('the shop with its tasks in %s', (_, kills, open) => {
  it(
    'the shop with its tasks charges every order that it has accepted, though it is killed again and again, and few twice',
    { timeout: 300_000 },
    async () => {
      const broker = await open();
      const accepted: string[] = [];
      const shops: RunningShop[] = [];
      const notPicked = (): string[] => {
        const lists = shops.flatMap(({ lines }) =>
          lines.map((line) => /pick list for leipzig: (.*)/.exec(line)),
        );
        const picked = new Set(lists.flatMap((list) => list?.[1]?.split(' ') ?? []));
        return accepted.filter((id) => !picked.has(id));
      };
      for (let kill = 1; kill <= kills; kill++) {
        const shop = await startShop(...broker);
        const sending = sendOrders(shop.url, `run-${kill}`, accepted);
        await until('orders are accepted', () => accepted.length >= ORDERS_PER_KILL * kill);
        await sleep(17 * kill);
        shop.process.kill('SIGKILL');
        await once(shop.process, 'close');
        await sending;
        shops.push(shop);
      }

      const last = await startShop(...broker);
      shops.push(last);
      for (const id of accepted) {
        const response = await fetch(`${last.url}/orders/${id}/wait`);
        expect(await response.json()).toMatchObject({
          id,
          state: 'completed',
          receipt: `paid ${id}`,
          retried: 0,
        });
      }
      // A kill while a pick list of six is being made returns the orders to their group, minutes later.
      await until('the last pick list is made', () => notPicked().length <= kills * 6);
      last.process.kill('SIGTERM');
      // 3: something was still to do, such as the report of each minute, or a pick list whose orders came back from a kill.
      expect([
        [0, null],
        [3, null],
      ]).toContainEqual(await once(last.process, 'close'));

      // What was in work at a kill is done again, and nothing else.
      const repeats = [...charges.values()].reduce((sum, times) => sum + times - 1, 0);
      expect(repeats).toBeLessThanOrEqual(kills * WORKERS);
      expect(accepted.filter((id) => !charges.has(id))).toEqual([]);
    },
  );
});
