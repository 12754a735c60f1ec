import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BrokerSource } from '../../dashboard/tasks-source.ts';
import { DiskQueue } from '../../diskqueue/disk-queue.ts';
import { DelayedOperationPurgatory } from '../../purgatory/purgatory.ts';
import { EmbeddedBroker } from '../../tasks/broker/embedded/embedded-broker.ts';
import { Client } from '../../tasks/client.ts';
import { SkipRetry } from '../../tasks/handler-errors.ts';
import { Inspector } from '../../tasks/inspector.ts';
import { Scheduler } from '../../tasks/scheduler/scheduler.ts';
import type { Handler } from '../../tasks/server/handler.ts';
import { Server } from '../../tasks/server/server.ts';
import type { TaskOptions } from '../../tasks/task-options.ts';
import { Task } from '../../tasks/task.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import { ItemExponentialFailureRateLimiter } from '../../workqueue/item-exponential-failure-rate-limiter.ts';
import { RateLimitingQueue } from '../../workqueue/rate-limiting-queue.ts';
import type { Shown } from './shown.ts';

/*
 * The world of `escapement dashboard --demo`: a shop on a busy day, in this process and in memory.
 *
 *      orders ──► mail, webhooks, invoices ──► two servers, which fail now and then
 *      photos ──► images: slow, with progress      reports: paused      exports: no server works on it
 *      visits ──► 40 000 session timers            carts ──► a purgatory, until their payment has come
 *      contacts ─► a work queue that retries       clicks ──► a disk queue, in a temporary folder
 *
 * What happens is random. It takes a few percent of a core.
 */

/** Starts the world. It ends, and its folder is removed, with `close`. */
export async function startDemo(): Promise<Shown> {
  const broker = await EmbeddedBroker.open();
  const endings: (() => unknown)[] = [() => broker.close()];
  await fillQueues(broker);
  endings.push(startScheduler(broker), await startServers(broker));
  const timers = [startSessions(), new SystemTimer({ name: 'checkout' })] as const;
  const [, checkout] = timers;
  endings.push(() => timers.map((timer) => timer.close()));
  const carts = startCarts(checkout);
  const contacts = startContacts(checkout);
  const clicks = await startClicks();
  endings.push(carts.end, contacts.end, clicks.end, startOrders(broker));
  return {
    title: 'Demo shop',
    source: new BrokerSource(broker),
    parts: { timers, purgatories: [carts.shown], workQueues: [contacts.shown], diskQueues: [clicks.shown] },
    isReadOnly: false,
    close: async () => {
      for (const end of endings.reverse()) await end();
    },
  };
}

// Chance.

/** Returns an integer from 0 to below `limit`. */
const below = (limit: number): number => Math.floor(Math.random() * limit);
const oneOf = <T>(choices: readonly T[]): T => choices[below(choices.length)] as T;
/** Returns a number between two, small ones as often as large ones. */
const between = (least: number, most: number): number => least * (most / least) ** Math.random();

const CUSTOMERS = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'stark', 'wayne', 'tyrell'];
const PRODUCTS = ['lamp', 'teapot', 'bicycle', 'violin', 'kettle', 'atlas', 'hammock', 'globe'];

const euros = (): number => below(40_000) / 100;
const orderId = (): string => `A-${100_000 + below(900_000)}`;
const address = (): string => `${oneOf(['mia', 'noah', 'lena', 'omar', 'yuki', 'ines'])}@example.com`;

// Tasks.

/** A kind of task that the shop has. */
interface Kind {
  readonly type: string;
  readonly queue: string;
  /** Mean time from one to the next, in milliseconds. */
  readonly everyMs: number;
  /** Mean time of a run, in milliseconds. */
  readonly takesMs: number;
  /** Share of the runs that fail. */
  readonly failing: number;
  readonly errors: readonly string[];
  readonly payload: () => object;
  readonly options?: () => TaskOptions;
  readonly result?: () => object;
}

const KINDS: readonly Kind[] = [
  {
    ...{ type: 'mail:order-confirmation', queue: 'mail', everyMs: 600, takesMs: 250, failing: 0.06 },
    errors: [
      'smtp.example.com: 421 4.7.0 too many connections, try again later',
      'smtp.example.com: connection timed out after 10000 ms',
    ],
    payload: () => ({ order: orderId(), to: address(), total: euros() }),
    result: () => ({ messageId: `<${below(1e9)}@mail.example.com>`, accepted: 1 }),
  },
  {
    ...{ type: 'webhook:order-paid', queue: 'webhooks', everyMs: 350, takesMs: 400, failing: 0.18 },
    errors: [
      'POST https://hooks.example.com/orders: 503 Service Unavailable',
      'POST https://hooks.example.com/orders: getaddrinfo ENOTFOUND hooks.example.com',
      'POST https://hooks.example.com/orders: 401 Unauthorized: invalid signature',
    ],
    payload: () => ({ event: 'order.paid', order: orderId(), amount: euros(), currency: 'EUR' }),
    options: () => ({ key: oneOf(CUSTOMERS) }),
    result: () => ({ status: 200, durationMs: below(900) }),
  },
  {
    ...{ type: 'image:resize', queue: 'images', everyMs: 1_800, takesMs: 6_000, failing: 0.08 },
    errors: ['cannot decode photo.heic: unsupported codec', 'out of memory: 9000 × 6000 pixels'],
    payload: () => ({
      product: oneOf(PRODUCTS),
      file: `photo-${below(9_999)}.jpg`,
      widths: [320, 960, 1920],
    }),
    result: () => ({ files: 3, bytes: 80_000 + below(900_000) }),
  },
  {
    ...{ type: 'invoice:render', queue: 'invoices', everyMs: 1_500, takesMs: 900, failing: 0.05 },
    errors: ["template 'invoice.html': customer.vatId is undefined", 'disk quota exceeded: /var/invoices'],
    payload: () => ({
      invoice: 20_260_000_000_000_000 + below(1e9),
      customer: oneOf(CUSTOMERS),
      lines: 1 + below(9),
    }),
    options: () => ({ headers: { 'x-request-id': crypto.randomUUID() } }),
    result: () => ({ pages: 1 + below(3), path: `/var/invoices/${orderId()}.pdf` }),
  },
  {
    ...{ type: 'search:index', queue: 'search', everyMs: 400, takesMs: 100, failing: 0.01 },
    errors: ['search.example.com: index is read-only'],
    payload: () => ({ product: oneOf(PRODUCTS), field: oneOf(['price', 'stock', 'title']) }),
    options: () => ({ group: oneOf(PRODUCTS) }),
  },
  {
    ...{ type: 'stock:recount', queue: 'default', everyMs: 1_000, takesMs: 700, failing: 0.02 },
    errors: ['warehouse: lock not available'],
    payload: () => ({ product: oneOf(PRODUCTS) }),
    options: () => ({ uniqueTtlMs: 30_000, onDuplicate: 'extend', processInMs: 5_000 }),
  },
  {
    ...{ type: 'mail:review-reminder', queue: 'mail', everyMs: 2_500, takesMs: 200, failing: 0.02 },
    errors: ['smtp.example.com: 550 5.1.1 no such user'],
    payload: () => ({ order: orderId(), to: address() }),
    options: () => ({ processInMs: between(10_000, 86_400_000) }),
  },
  {
    ...{ type: 'report:sales', queue: 'reports', everyMs: 20_000, takesMs: 3_000, failing: 0 },
    errors: [],
    payload: () => ({ region: oneOf(['north', 'south', 'west', 'east']), format: 'xlsx' }),
  },
  {
    ...{ type: 'export:accounting', queue: 'exports', everyMs: 15_000, takesMs: 1_000, failing: 0 },
    errors: [],
    payload: () => ({ customer: oneOf(CUSTOMERS), since: '2026-11-01' }),
  },
];

function taskOf({ type, queue, payload, options, result }: Kind): Task {
  const retentionMs = result === undefined ? 0 : 600_000;
  return new Task(type, payload(), { queue, retentionMs, maxRetry: 3, timeoutMs: 60_000, ...options?.() });
}

/** What the day has left before it is looked at. */
async function fillQueues(broker: EmbeddedBroker): Promise<void> {
  const client = new Client({ broker });
  const inspector = new Inspector({ broker });
  await client.enqueueMany(KINDS.flatMap((kind) => Array.from({ length: 25 }, () => taskOf(kind))));
  await inspector.pauseQueue('reports');
}

/** New tasks, more and fewer of them in waves of two minutes. @returns what ends it. */
function startOrders(broker: EmbeddedBroker): () => void {
  const client = new Client({ broker });
  const stepMs = 200;
  return every(stepMs, () => {
    const tide = 1 + 0.7 * Math.sin((Date.now() / 120_000) * 2 * Math.PI);
    const kinds = KINDS.filter(({ everyMs }) => Math.random() < (tide * stepMs) / everyMs);
    void client.enqueueMany(kinds.map(taskOf));
  });
}

async function startServers(broker: EmbeddedBroker): Promise<() => Promise<unknown>> {
  const common = {
    broker,
    retryDelayMs: (retried: number) => between(4_000, 8_000) * 2 ** retried,
    shutdownTimeoutMs: 0,
    graceMs: 1_000,
  };
  const front = new Server({
    ...{ ...common, concurrency: 12, queues: { webhooks: 4, mail: 3, default: 1 } },
    limits: {
      mail: { rate: { tasks: 20, perMs: 1_000 } },
      webhooks: { perKey: { concurrency: 1, rate: { tasks: 2, perMs: 1_000, burst: 5 } } },
    },
  });
  const back = new Server({
    ...{ ...common, concurrency: 6, queues: { invoices: 3, images: 2, search: 1, reports: 1 } },
    ...{ limits: { images: { concurrency: 4 } }, groupGracePeriodMs: 4_000, groupMaxSize: 20 },
    groupAggregator: (group, tasks) =>
      new Task('search:index-batch', { product: group, changes: tasks.length }),
  });
  for (const server of [front, back]) await server.start(handle);
  return () => Promise.all([front.shutdown(), back.shutdown()]);
}

const handle: Handler = async (task, context) => {
  const kind = KINDS.find(({ type }) => type === task.type);
  const { takesMs, failing, errors, result } = kind ?? {
    takesMs: 300,
    failing: 0,
    errors: [],
    result: undefined,
  };
  const steps = takesMs > 2_000 ? 8 : 1;
  const hasFailed = Math.random() < failing;
  for (let step = 1; step <= steps; step++) {
    await sleep(between(takesMs / 2, takesMs * 2) / steps, undefined, { signal: context.signal });
    if (steps > 1)
      await context.progress({ percent: Math.round((100 * step) / steps), file: `${step} of ${steps}` });
    if (hasFailed && step >= steps / 2) throw failureOf(oneOf(errors));
  }
  if (result !== undefined) await context.writeResult({ ...result(), task: context.taskId });
};

/** What cannot succeed is not tried again. */
function failureOf(message: string): Error {
  return /unsupported|no such user|invalid signature/.test(message)
    ? new SkipRetry(message)
    : new Error(message);
}

function startScheduler(broker: EmbeddedBroker): () => Promise<void> {
  const scheduler = new Scheduler({ broker });
  scheduler.register('@every 15s', new Task('stock:sync', { warehouse: 'Rotterdam' }));
  scheduler.register('*/5 * * * *', new Task('invoice:remind', { overdueDays: 14 }, { queue: 'invoices' }));
  scheduler.register(
    'CRON_TZ=Europe/Berlin 0 9 * * 1-5',
    new Task('mail:digest', { list: 'merchants' }, { queue: 'mail' }),
  );
  scheduler.register('30 3 1 * *', new Task('report:month', { format: 'pdf' }, { queue: 'reports' }));
  void scheduler.start();
  return () => scheduler.shutdown();
}

// The other parts.

/** A part of the process that is shown, and what ends it. */
interface Running<Part> {
  readonly shown: Part;
  readonly end: () => unknown;
}

/** Sessions of visitors: each has a timer, which starts anew when it ends. Many are short, some last for hours. */
function startSessions(): SystemTimer {
  const sessions = new SystemTimer({ name: 'sessions' });
  const visit = (id: number): void => {
    sessions.schedule(between(2_000, 8 * 3_600_000), visit, id);
  };
  for (let id = 0; id < 40_000; id++) visit(id);
  return sessions;
}

/** Carts wait for their payment and their product, for half a minute at most. */
function startCarts(timer: SystemTimer): Running<DelayedOperationPurgatory<string>> {
  const purgatory = new DelayedOperationPurgatory<string>('carts', { timer });
  const stop = every(100, () => {
    const paid = Math.random() < 0.8 ? Date.now() + between(500, 20_000) : Infinity;
    const keys = [`stock:${oneOf(PRODUCTS)}`, `payment:${orderId()}`];
    const isPaid = (): true | undefined => (Date.now() >= paid ? true : undefined);
    purgatory.wait(keys, isPaid, { timeoutMs: 30_000 }).catch(() => undefined); // the customer did not pay
    purgatory.checkAndComplete(`stock:${oneOf(PRODUCTS)}`);
  });
  return {
    shown: purgatory,
    end: () => {
      stop();
      purgatory.close();
    },
  };
}

/** Contacts are copied to another system, which refuses some of them for a while. */
function startContacts(timer: SystemTimer): Running<RateLimitingQueue<string>> {
  const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 500, maxDelayMs: 60_000 });
  const queue = new RateLimitingQueue<string>(limiter, { name: 'contacts', timer });
  const copy = async (contact: string, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    await sleep(between(50, 800), undefined, { signal });
    if (contact.endsWith('7') && Math.random() < 0.9) throw new Error(`${contact}: locked by another user`);
  };
  const controller = new AbortController();
  const ignore = (): void => undefined;
  const running = queue.run(copy, {
    ...{ concurrency: 3, signal: controller.signal, maxRetries: 8, onError: ignore, onDrop: ignore },
  });
  const stop = every(150, () => {
    queue.add(`${oneOf(CUSTOMERS)}/contact-${below(200)}`);
  });
  return {
    shown: queue,
    end: async () => {
      stop();
      queue.shutDown();
      controller.abort();
      await running;
    },
  };
}

/** Clicks are spooled to the disk, and a slow reader takes them away. */
async function startClicks(): Promise<Running<DiskQueue>> {
  const dataPath = await mkdtemp(join(tmpdir(), 'escapement-demo-'));
  const queue = await DiskQueue.open({ name: 'clicks', dataPath, maxBytesPerFile: 32_768, durability: 'os' });
  const click = (): Promise<void> => {
    const visit = {
      at: new Date().toISOString(),
      page: `/products/${oneOf(PRODUCTS)}`,
      note: '.'.repeat(below(400)),
    };
    return queue.put(Buffer.from(JSON.stringify(visit)));
  };
  await Promise.all(Array.from({ length: 400 }, click));
  const stopWriting = every(100, () => void click().catch(() => undefined));
  const stopReading = every(5_000, () => void read(queue, 20 + below(60)).catch(() => undefined));
  return {
    shown: queue,
    end: async () => {
      stopWriting();
      stopReading();
      await queue.delete();
      await rm(dataPath, { recursive: true, force: true });
    },
  };
}

async function read(queue: DiskQueue, count: number): Promise<void> {
  for (let nth = 0; nth < count && queue.depth > 100; nth++) {
    const delivery = await queue.receive();
    setTimeout(() => {
      delivery.ack();
    }, below(4_000)).unref();
  }
}

/** @returns what stops it. */
function every(ms: number, action: () => void): () => void {
  const interval = setInterval(action, ms);
  return () => {
    clearInterval(interval);
  };
}
