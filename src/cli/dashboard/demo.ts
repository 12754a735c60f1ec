import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/units.ts';
import type { PartsShown } from '../../dashboard/runtime-parts.ts';
import { BrokerSource, type TasksSource } from '../../dashboard/tasks-source.ts';
import { DiskQueue } from '../../diskqueue/disk-queue.ts';
import { DelayedOperationPurgatory } from '../../purgatory/purgatory.ts';
import { EmbeddedBroker } from '../../tasks/broker/embedded/embedded-broker.ts';
import { Client } from '../../tasks/client.ts';
import { type Handler, SkipRetry } from '../../tasks/handler.ts';
import { Inspector } from '../../tasks/inspector.ts';
import { Scheduler } from '../../tasks/scheduler/scheduler.ts';
import { Server } from '../../tasks/server/server.ts';
import type { TaskOptions } from '../../tasks/task-options.ts';
import { Task } from '../../tasks/task.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import { ItemExponentialFailureRateLimiter } from '../../workqueue/item-exponential-failure-rate-limiter.ts';
import { RateLimitingQueue } from '../../workqueue/rate-limiting-queue.ts';

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

/** What a dashboard shows. */
export interface Shown {
  readonly title: string;
  readonly source: TasksSource;
  readonly parts: Partial<PartsShown>;
  readonly isReadOnly: boolean;
  close(): Promise<void>;
}

/** What ends the parts of the world, the last one first. */
type Endings = (() => unknown)[];

/** Starts the world. It ends, and its folder is removed, with `close`. */
export async function startDemo(): Promise<Shown> {
  const endings: Endings = [];
  const broker = await EmbeddedBroker.open();
  endings.push(() => broker.close());
  await startTasks(broker, endings);
  const checkout = new SystemTimer({ name: 'checkout' });
  endings.push(() => checkout.close());
  const parts = {
    timers: [startSessions(endings), checkout],
    purgatories: [startCarts(checkout, endings)],
    workQueues: [startContacts(checkout, endings)],
    diskQueues: [await startClicks(endings)],
  };
  const close = async (): Promise<void> => {
    for (const end of endings.reverse()) await end();
  };
  return { title: 'Demo shop', source: new BrokerSource(broker), parts, isReadOnly: false, close };
}

function every(ms: number, endings: Endings, action: () => void): void {
  const interval = setInterval(action, ms);
  endings.push(() => {
    clearInterval(interval);
  });
}

// Chance.

/** Returns an integer from 0 to below `limit`. */
const below = (limit: number): number => Math.floor(Math.random() * limit);
const oneOf = (choices: readonly string[]): string => choices[below(choices.length)] ?? '';
/** Returns a number between two, small ones as often as large ones. */
const between = (least: number, most: number): number => least * (most / least) ** Math.random();

const customer = (): string => oneOf(['acme', 'globex', 'initech', 'umbrella', 'hooli', 'stark', 'tyrell']);
const product = (): string => oneOf(['lamp', 'teapot', 'bicycle', 'violin', 'kettle', 'atlas', 'hammock']);
const order = (): string => `A-${100_000 + below(900_000)}`;
const address = (): string => `${oneOf(['mia', 'noah', 'lena', 'omar', 'yuki', 'ines'])}@example.com`;

// Tasks.

/** A kind of task, with the mean time from one to the next and that of a run. */
interface Kind {
  readonly type: string;
  readonly queue: string;
  readonly everyMs: number;
  readonly takesMs: number;
  /** Share of the runs that fail, and with what. @default none */
  readonly failing?: number;
  readonly error?: string;
  readonly payload: () => object;
  readonly options?: () => TaskOptions;
}

const KINDS: readonly Kind[] = [
  {
    ...{ type: 'mail:order-confirmation', queue: 'mail', everyMs: 600, takesMs: 250, failing: 0.06 },
    error: 'smtp.example.com: 421 4.7.0 too many connections, try again later',
    payload: () => ({ order: order(), to: address(), total: below(40_000) / 100 }),
  },
  {
    ...{ type: 'mail:review-reminder', queue: 'mail', everyMs: 2_500, takesMs: 200, failing: 0.02 },
    error: 'smtp.example.com: 550 5.1.1 no such user',
    payload: () => ({ order: order(), to: address() }),
    options: () => ({ processInMs: between(10 * SECOND_MS, 24 * HOUR_MS) }),
  },
  {
    ...{ type: 'webhook:order-paid', queue: 'webhooks', everyMs: 350, takesMs: 400, failing: 0.18 },
    error: 'POST https://hooks.example.com/orders: 503 Service Unavailable',
    payload: () => ({ event: 'order.paid', order: order(), currency: 'EUR' }),
    options: () => ({ key: customer() }),
  },
  {
    ...{ type: 'image:resize', queue: 'images', everyMs: 1_800, takesMs: 6_000, failing: 0.08 },
    error: 'cannot decode photo.heic: unsupported codec',
    payload: () => ({ product: product(), file: `photo-${below(9_999)}.jpg`, widths: [320, 960, 1920] }),
  },
  {
    ...{ type: 'invoice:render', queue: 'invoices', everyMs: 1_500, takesMs: 900, failing: 0.05 },
    error: "template 'invoice.html': customer.vatId is undefined",
    payload: () => ({ invoice: 20_260_000_000_000_000 + below(1e9), customer: customer() }),
    options: () => ({ headers: { 'x-request-id': crypto.randomUUID() } }),
  },
  {
    ...{ type: 'search:index', queue: 'search', everyMs: 400, takesMs: 100, failing: 0.01 },
    error: 'search.example.com: index is read-only',
    payload: () => ({ product: product(), field: oneOf(['price', 'stock', 'title']) }),
    options: () => ({ group: product() }),
  },
  {
    ...{ type: 'stock:recount', queue: 'default', everyMs: 1_000, takesMs: 700, failing: 0.02 },
    error: 'warehouse: lock not available',
    payload: () => ({ product: product() }),
    options: () => ({ uniqueTtlMs: 30 * SECOND_MS, onDuplicate: 'extend', processInMs: 5 * SECOND_MS }),
  },
  {
    ...{ type: 'report:sales', queue: 'reports', everyMs: 20_000, takesMs: 3_000 },
    payload: () => ({ region: oneOf(['north', 'south', 'west', 'east']), format: 'xlsx' }),
  },
  {
    ...{ type: 'export:accounting', queue: 'exports', everyMs: 15_000, takesMs: 1_000 },
    payload: () => ({ customer: customer(), since: '2026-11-01' }),
  },
];

function taskOf({ type, queue, payload, options }: Kind): Task {
  const settings = { queue, retentionMs: 10 * MINUTE_MS, maxRetry: 3, timeoutMs: MINUTE_MS };
  return new Task(type, payload(), { ...settings, ...options?.() });
}

/** Queues with a backlog, their servers and schedules, and new tasks: more and fewer of them in waves of two minutes. */
async function startTasks(broker: EmbeddedBroker, endings: Endings): Promise<void> {
  const client = new Client({ broker });
  await client.enqueueMany(KINDS.flatMap((kind) => Array.from({ length: 25 }, () => taskOf(kind))));
  await new Inspector({ broker }).pauseQueue('reports');
  const retryDelayMs = (retried: number): number => between(4_000, 8_000) * 2 ** retried;
  const common = { broker, retryDelayMs, shutdownTimeoutMs: 0, graceMs: SECOND_MS };
  const front = new Server({
    ...{ ...common, concurrency: 12, queues: { webhooks: 4, mail: 3, default: 1 } },
    limits: {
      mail: { rate: { tasks: 20, perMs: SECOND_MS } },
      webhooks: { perKey: { concurrency: 1, rate: { tasks: 2, perMs: SECOND_MS, burst: 5 } } },
    },
  });
  const back = new Server({
    ...{ ...common, concurrency: 6, queues: { invoices: 3, images: 2, search: 1, reports: 1 } },
    ...{ limits: { images: { concurrency: 4 } }, groupGracePeriodMs: 4 * SECOND_MS, groupMaxSize: 20 },
    groupAggregator: (group, tasks) =>
      new Task('search:index-batch', { product: group, changes: tasks.length }),
  });
  await Promise.all([front.start(handle), back.start(handle)]);
  endings.push(() => Promise.all([front.shutdown(), back.shutdown()]));
  const scheduler = new Scheduler({ broker });
  scheduler.register('@every 15s', new Task('stock:sync', { warehouse: 'Rotterdam' }));
  scheduler.register('*/5 * * * *', new Task('invoice:remind', { overdueDays: 14 }, { queue: 'invoices' }));
  const digest = new Task('mail:digest', { list: 'merchants' }, { queue: 'mail' });
  scheduler.register('CRON_TZ=Europe/Berlin 0 9 * * 1-5', digest);
  void scheduler.start();
  endings.push(() => scheduler.shutdown());
  const stepMs = 200;
  every(stepMs, endings, () => {
    const tide = 1 + 0.7 * Math.sin((Date.now() / (2 * MINUTE_MS)) * 2 * Math.PI);
    const kinds = KINDS.filter(({ everyMs }) => Math.random() < (tide * stepMs) / everyMs);
    void client.enqueueMany(kinds.map(taskOf));
  });
}

/** Works in steps, with progress if that takes long. */
const handle: Handler = async (task, context) => {
  const kind = KINDS.find(({ type }) => type === task.type);
  const { takesMs = 300, failing = 0, error = '' } = kind ?? {};
  const steps = takesMs > 2_000 ? 8 : 1;
  const hasFailed = Math.random() < failing;
  for (let step = 1; step <= steps; step++) {
    await sleep(between(takesMs / 2, takesMs * 2) / steps, undefined, { signal: context.signal });
    if (steps > 1) await context.progress({ percent: (100 * step) / steps, step: `${step} of ${steps}` });
    if (hasFailed && step >= steps / 2) throw failureOf(error);
  }
  await context.writeResult({ task: context.taskId, isDone: true });
};

/** What cannot succeed is not tried again. */
function failureOf(message: string): Error {
  return /unsupported|no such user/.test(message) ? new SkipRetry(message) : new Error(message);
}

// The other parts.

/** Sessions of visitors: each has a timer, which starts anew when it ends. Many are short, some last for hours. */
function startSessions(endings: Endings): SystemTimer {
  const sessions = new SystemTimer({ name: 'sessions' });
  endings.push(() => sessions.close());
  const visit = (id: number): void => {
    sessions.schedule(between(2 * SECOND_MS, 8 * HOUR_MS), visit, id);
  };
  for (let id = 0; id < 40_000; id++) visit(id);
  return sessions;
}

/** Carts wait for their payment and their product, for half a minute at most. */
function startCarts(timer: SystemTimer, endings: Endings): DelayedOperationPurgatory<string> {
  const carts = new DelayedOperationPurgatory<string>('carts', { timer });
  endings.push(() => {
    carts.close();
  });
  every(100, endings, () => {
    const paidAtMs = Math.random() < 0.8 ? Date.now() + between(500, 20_000) : Infinity;
    const isPaid = (): true | undefined => (Date.now() >= paidAtMs ? true : undefined);
    const keys = [`stock:${product()}`, `payment:${order()}`];
    carts.wait(keys, isPaid, { timeoutMs: 30 * SECOND_MS }).catch(() => undefined); // the customer did not pay
    carts.checkAndComplete(`stock:${product()}`);
  });
  return carts;
}

/** Contacts are copied to another system, which refuses some of them for a while. */
function startContacts(timer: SystemTimer, endings: Endings): RateLimitingQueue<string> {
  const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 500, maxDelayMs: MINUTE_MS });
  const contacts = new RateLimitingQueue<string>(limiter, { name: 'contacts', timer });
  const copy = async (contact: string, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    await sleep(between(50, 800), undefined, { signal });
    if (contact.endsWith('7') && Math.random() < 0.9) throw new Error(`${contact}: locked by another user`);
  };
  const controller = new AbortController();
  const ignore = (): void => undefined;
  const settings = { concurrency: 3, maxRetries: 8, onError: ignore, onDrop: ignore };
  const running = contacts.run(copy, { ...settings, signal: controller.signal });
  endings.push(() => {
    contacts.shutDown();
    controller.abort();
    return running;
  });
  every(150, endings, () => {
    contacts.add(`${customer()}/contact-${below(200)}`);
  });
  return contacts;
}

/** Clicks are spooled to the disk, and a slow reader takes them away. */
async function startClicks(endings: Endings): Promise<DiskQueue> {
  const dataPath = await mkdtemp(join(tmpdir(), 'escapement-demo-'));
  endings.push(() => rm(dataPath, { recursive: true, force: true }));
  const clicks = await DiskQueue.open({
    name: 'clicks',
    dataPath,
    maxBytesPerFile: 32_768,
    durability: 'os',
  });
  endings.push(() => clicks.delete());
  const click = (): Promise<void> => {
    const visit = { at: new Date(), page: `/products/${product()}`, note: '.'.repeat(below(400)) };
    return clicks.put(Buffer.from(JSON.stringify(visit)));
  };
  const read = async (): Promise<void> => {
    for (let nth = below(60); nth < 80 && clicks.depth > 100; nth++) {
      const delivery = await clicks.receive();
      setTimeout(() => {
        delivery.ack();
      }, below(4_000)).unref();
    }
  };
  await Promise.all(Array.from({ length: 400 }, click));
  every(100, endings, () => void click().catch(() => undefined));
  every(5_000, endings, () => void read().catch(() => undefined));
  return clicks;
}
