/**
 * A shop with background jobs (shop.ts): orders are charged, packed and reported by tasks, which survive a crash of the process in a
 * folder or on Redis.
 *
 *     npm run example:jobs                                                         shows itself, a few seconds
 *     npm run example:jobs -- --port 8080 --payments http://127.0.0.1:9000/ --folder shop   serves, until Ctrl-C
 *     npm run example:jobs -- --port 8080 --payments … --redis redis://127.0.0.1   the same, for a fleet of shops
 *
 * Alone it starts a payment provider that is busy now and then, and sends orders. You see which runs fail and are tried again, a declined
 * card that is not, pick lists that are made of several orders, and a report by the scheduler.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedBroker, type Broker } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { command, exitCodeOf, integer, say, stopSignal } from '../command-line.ts';
import { Shop } from './shop.ts';

/** Tasks are left to do: when the shop is started again. */
const EXIT_UNFINISHED = 3;

const program = command('example:jobs', 'A shop that charges, packs and reports orders in the background.')
  .option('--port <number>', 'port of the shop (0 to 65535)', integer(0, 65_535))
  .option('--payments <url>', 'address of the payment provider; without it, the program shows itself')
  .option('--folder <path>', 'folder that keeps the tasks; without it, a temporary one')
  .option('--redis <url>', 'Redis that keeps the tasks, instead of a folder')
  .option('--workers <number>', 'tasks that run at once (1 to 100)', integer(1, 100), 4)
  .parse();
interface Options {
  readonly port?: number;
  readonly payments?: string;
  readonly folder?: string;
  readonly redis?: string;
  readonly workers: number;
}
const options = program.opts<Options>();

/** Made only if it is used. */
const temporary = join(tmpdir(), `escapement-shop-${randomUUID()}`);

const stop = stopSignal();
const { payments } = options;
await exitCodeOf(payments === undefined ? showItself() : serve(payments), stop);

/** The one place that knows which broker it is. */
async function openBroker(): Promise<Broker> {
  const { folder = temporary, redis } = options;
  return redis === undefined ? EmbeddedBroker.open({ dataPath: folder }) : new RedisBroker({ url: redis });
}

async function serve(payments: string): Promise<void> {
  await withShop(payments, '@every 1m', async () => {
    if (!stop.aborted) await once(stop, 'abort');
    say('stopping: no more orders, and what runs is finished');
  });
}

/** Runs a shop for as long as `use` takes. */
async function withShop(
  payments: string,
  reportAt: string,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const broker = await openBroker();
  const { port = 0, workers } = options;
  const shop = new Shop({ broker, port, workers, payments, reportAt, report: say });
  try {
    const url = await shop.start();
    say(`a shop at ${url}/orders`);
    say(`what is queued: ${url}/admin/api/queues`);
    await use(url);
  } finally {
    const left = await shop.close();
    await broker.close();
    await rm(temporary, { recursive: true, force: true });
    if (left > 0) {
      say(`${left} tasks were left to do`);
      process.exitCode = EXIT_UNFINISHED;
    }
  }
}

async function showItself(): Promise<void> {
  let requests = 0;
  const provider = createServer((request, response) => {
    void json(request).then((body) => {
      const { order, cents } = body as { order: string; cents: number };
      const status = ++requests % 4 === 0 ? 503 : cents > 100_000 ? 402 : 200;
      setTimeout(() => response.writeHead(status).end(`paid ${order}`), 20);
    });
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const payments = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/`;
  try {
    await withShop(payments, '@every 2s', sendOrders);
  } finally {
    provider.close();
    provider.closeAllConnections();
  }
}

async function sendOrders(url: string): Promise<void> {
  const send = async (id: string, customer: string, cents: number): Promise<string> => {
    const body = JSON.stringify({ id, customer, cents });
    const taken = await fetch(`${url}/orders`, { method: 'POST', body, signal: stop });
    if (!taken.ok) return `refused with ${taken.status}`;
    const { wait } = (await taken.json()) as { wait: string };
    const done = await fetch(url + wait, { signal: stop });
    return ((await done.json()) as { state: string }).state;
  };
  for (const customer of ['ada', 'bob']) {
    const orders = Array.from({ length: 6 }, (_, index) => send(`${customer}-${index + 1}`, customer, 4_200));
    const states = await Promise.all(orders);
    const charged = states.filter((state) => state === 'completed').length;
    say(`${customer} has sent ${orders.length} orders: ${charged} are charged`);
  }
  say(`carol orders for 5 million: ${await send('carol-1', 'carol', 500_000_000)}`);
  say(`dave orders for nothing: ${await send('dave-1', 'dave', 0)}`);
  await sleep(2_500, undefined, { signal: stop }); // the pick list waits a second for one more order
}
