import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DelayedOperationPurgatory,
  ItemExponentialFailureRateLimiter,
  RateLimitingQueue,
  SystemTimer,
} from 'escapement';
import { dashboard, type DashboardOptions } from 'escapement/dashboard';
import { DiskQueue } from 'escapement/diskqueue';
import { Client, EmbeddedBroker, Inspector, Scheduler, Server, SkipRetry, Task } from 'escapement/tasks';
import type { Browser } from 'playwright-core';
import { launch, openTab, type Tab } from './browser.ts';

/** A program with some of everything that the dashboard shows, which runs until it is closed. */
export interface World {
  /** Address of the dashboard. */
  readonly url: string;
  readonly broker: EmbeddedBroker;
  readonly client: Client;
  readonly inspector: Inspector;
  /** Requests that the dashboard has received: method and path. */
  readonly requests: string[];
  /** Ends all connections and accepts no more, until the function that it resolves with is called. */
  cutOff(): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;

export interface WorldOptions extends DashboardOptions {
  /** Whether tasks and timers come and go. */
  readonly isBusy?: boolean;
  /** Whether it is without names that try to be more than text. */
  readonly isTame?: boolean;
}

export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const { isBusy = false, isTame = false, ...shown } = options;
  const broker = await EmbeddedBroker.open();
  const client = new Client({ broker });
  const folder = await mkdtemp(join(tmpdir(), 'dashboard-'));
  await enqueueSome(client);
  if (!isTame) await enqueueHostile(client);
  const inspector = new Inspector({ broker });
  await inspector.setLimits('mail', { concurrency: 8, perKey: { rate: { tasks: 20, perMs: 60_000 } } });
  await inspector.pauseQueue('imports');
  const server = new Server({
    broker,
    concurrency: 12,
    shutdownTimeoutMs: 200,
    queues: { default: 3, mail: 2, reports: 1 },
  });
  await server.start(async (task, context) => {
    const { ms = 40, steps = 1, fail } = task.json<{ ms?: number; steps?: number; fail?: string }>();
    if (fail !== undefined) throw task.type === 'payment:capture' ? new SkipRetry(fail) : new Error(fail);
    for (let step = 0; step < steps; step++) {
      await context.progress({ done: step, total: steps });
      await new Promise<void>((resolve) => {
        const wait = setTimeout(resolve, ms);
        context.signal.addEventListener('abort', () => {
          clearTimeout(wait);
          resolve();
        });
      });
      context.signal.throwIfAborted();
    }
    return { sum: 12_345_678, ok: true };
  });
  const scheduler = new Scheduler({ broker, location: 'Europe/Berlin' });
  scheduler.register('30 9 * * 1-5', new Task('report:daily', { format: 'pdf' }), { queue: 'reports' });
  scheduler.register('@daily', new Task('report:nightly', {}), { queue: 'reports' });
  scheduler.register('@every 2s', new Task('cache:sweep', {}), { queue: 'default', retentionMs: HOUR_MS });
  await scheduler.start();
  const parts = await openParts(folder);
  const stopTraffic = isBusy ? startTraffic(client, parts) : () => undefined;
  const board = dashboard({
    broker,
    timers: [parts.timer],
    purgatories: [parts.purgatory],
    workQueues: [parts.workQueue],
    diskQueues: [parts.diskQueue],
    title: 'Shop',
    ...shown,
  });
  const requests: string[] = [];
  const http = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    board(request, response);
  });
  const listen = async (port: number): Promise<number> => {
    http.listen(port, '127.0.0.1');
    await once(http, 'listening');
    return (http.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const cut = async (): Promise<void> => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${port}${shown.rootPath ?? ''}/`,
    ...{ broker, client, inspector, requests },
    async cutOff() {
      await cut();
      return async () => await listen(port);
    },
    async close() {
      stopTraffic();
      board.close();
      if (http.listening) await cut();
      await scheduler.shutdown();
      await server.shutdown();
      await parts.close();
      await broker.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Payloads, ids and names that try to be more than text. */
export const HOSTILE = '<img src=x onerror=alert(1)>"\'&\u0007\u202e</script><script>alert(2)</script>';

async function enqueueSome(client: Client): Promise<void> {
  const add = (type: string, payload: unknown, task: object = {}): Promise<unknown> =>
    client.enqueue(new Task(type, payload), task);
  for (let n = 0; n < 60; n++) {
    await add(
      'order:export',
      { order: 7_000 + n, lines: 12, to: 's3://exports/2026' },
      { queue: 'imports', key: `tenant-${n % 3}` },
    );
  }
  for (let n = 0; n < 8; n++) {
    const user = { id: 40_000 + n, name: n % 2 === 0 ? 'Ada' : 'Grace', tags: ['new', 'eu'] };
    await add('email:welcome', { user, template: 'welcome-7' }, { queue: 'mail', processInMs: HOUR_MS });
    await add(
      'email:digest',
      { to: `team-${n % 3}@example.com`, n },
      { queue: 'mail', group: `team-${n % 3}` },
    );
    await add('image:resize', { fail: `read ECONNRESET while fetching cdn/${n}.png` }, { maxRetry: 5 });
  }
  const exact = new TextEncoder().encode(
    '{"id":12345678901234567890,"rate":1.10,"nested":{"a":[1,2,{}],"b":null}}',
  );
  await client.enqueue(new Task('ledger:post', exact), {
    taskId: 'exact',
    processInMs: HOUR_MS,
    key: 'tenant-7',
  });
  await client.enqueue(new Task('blob:store', new Uint8Array([0, 255, 16, 32, 65, 66])), {
    taskId: 'binary',
    processInMs: HOUR_MS,
  });
  for (let n = 0; n < 3; n++) {
    await add('payment:capture', { payment: n, fail: 'card declined: insufficient funds' });
  }
  await add('video:transcode', { ms: 500, steps: 600 }, { taskId: 'long', queue: 'reports' });
  for (let n = 0; n < 30; n++)
    await add('tenant:sync', { n }, { key: `tenant-${n % 4}`, retentionMs: HOUR_MS });
}

async function enqueueHostile(client: Client): Promise<void> {
  await client.enqueue(new Task(HOSTILE, HOSTILE), { taskId: HOSTILE, queue: HOSTILE, processInMs: HOUR_MS });
}

interface Parts {
  readonly timer: SystemTimer;
  readonly purgatory: DelayedOperationPurgatory<string>;
  readonly workQueue: RateLimitingQueue<string>;
  readonly diskQueue: DiskQueue;
  close(): Promise<void>;
}

async function openParts(folder: string): Promise<Parts> {
  const timer = new SystemTimer({ name: 'requests' });
  for (let n = 0; n < 2_000; n++) timer.schedule(50 + 600_000 * Math.random() ** 4, () => undefined);
  const purgatory = new DelayedOperationPurgatory<string>('fetch');
  for (let n = 0; n < 40; n++) {
    purgatory
      .wait([`partition-${Math.floor(6 * Math.random() ** 2)}`], () => undefined, { timeoutMs: HOUR_MS })
      .catch(() => undefined);
  }
  const workQueue = new RateLimitingQueue<string>(
    new ItemExponentialFailureRateLimiter({ baseDelayMs: 60_000, maxDelayMs: HOUR_MS }),
    { name: 'pods' },
  );
  for (let n = 0; n < 7; n++) workQueue.add(`default/web-${n}`);
  for (let n = 0; n < 4; n++) for (let m = 0; m <= n; m++) workQueue.addRateLimited(`default/db-${n}`);
  const diskQueue = await DiskQueue.open({ name: 'outbox', dataPath: folder, maxBytesPerFile: 8_192 });
  for (let n = 0; n < 30; n++) await diskQueue.put(Buffer.alloc(1_000 + n));
  for (let n = 0; n < 12; n++) (await diskQueue.receive()).ack();
  return {
    ...{ timer, purgatory, workQueue, diskQueue },
    async close() {
      timer.close();
      purgatory.close();
      workQueue.shutDown();
      await diskQueue.close();
    },
  };
}

/** A program with a dashboard, a browser, and a tab that shows the dashboard. */
export interface Shown {
  readonly world: World;
  readonly browser: Browser;
  readonly tab: Tab;
  readonly close: () => Promise<void>;
}

export async function showWorld(options?: WorldOptions): Promise<Shown> {
  const [world, browser] = await Promise.all([openWorld(options), launch()]);
  const close = async (): Promise<void> => {
    await browser.close();
    await world.close();
  };
  return { world, browser, tab: await openTab(browser, world.url), close };
}

/** Work that comes and goes, so that there is something to see. */
function startTraffic(client: Client, { timer }: Parts): () => void {
  let beat = 0;
  const traffic = setInterval(() => {
    beat++;
    const many = 3 + Math.round(3 * Math.sin(beat / 12) + 2 * Math.random());
    for (let n = 0; n < many; n++) {
      const task = new Task(n % 3 === 0 ? 'order:confirm' : 'tenant:sync', {
        order: beat * 10 + n,
        ms: 30 + 300 * Math.random(),
        ...(Math.random() < 0.06 ? { fail: 'upstream answered 503 Service Unavailable' } : {}),
      });
      void client.enqueue(task, {
        key: `tenant-${n % 4}`,
        retentionMs: 600_000,
        queue: n % 4 === 0 ? 'mail' : 'default',
      });
    }
    for (let n = 0; n < 20; n++) timer.schedule(50 + 240_000 * Math.random() ** 5, () => undefined);
  }, 200);
  return () => clearInterval(traffic);
}
