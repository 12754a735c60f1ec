/**
 * A shop that takes orders over HTTP, and does what takes time in the background.
 *
 *     POST /orders ──► order:charge ──► order:pack, in a group ──► picklist:print
 *     202, id            │  │ └─ the provider is busy: 100 ms later, 200 ms, … five times
 *                        │  └─ the card is declined: SkipRetry, archived at once
 *     GET /orders/ID/wait ◄─ done, with its receipt
 *     Scheduler ──► report:sales
 *
 * A task runs at least once: a worker that dies after its work and before it can report that has done it for nothing, and it is done
 * again. So the provider gets the id of the order, and charges it once; and the task that packs an order has an id made of the order's.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { EscapementError } from 'escapement';
import {
  Client,
  defineTask,
  Inspector,
  Scheduler,
  ServeMux,
  Server,
  SkipRetry,
  type Broker,
  type Middleware,
  type TaskInfo,
} from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { z } from 'zod';

const PAYMENTS = 'payments';

const orderId = z.string().regex(/^[\w-]{1,64}$/);
const order = z.object({ id: orderId, customer: z.string().min(1), cents: z.int().positive() });

/** A task type is declared once: the payload is checked and typed where it is enqueued and where it is handled. */
const chargeOrder = defineTask('order:charge', {
  schema: order,
  queue: PAYMENTS,
  maxRetry: 5,
  timeoutMs: 10_000,
  retentionMs: 3_600_000, // so long an order can be asked about, and its id is taken
});
const packOrder = defineTask('order:pack', { schema: z.object({ order: orderId }), queue: 'warehouse' });
const printPickList = defineTask('picklist:print', {
  schema: z.object({ warehouse: z.string(), orders: z.array(orderId) }),
  queue: 'warehouse',
});
const reportSales = defineTask('report:sales', { schema: z.object({}), queue: 'reports', maxRetry: 0 });

const WAREHOUSE = 'leipzig';
const STATUS_OF_CODE: Partial<Record<string, number>> = {
  ERR_TASK_PAYLOAD: 400,
  ERR_TASK_NOT_FOUND: 404,
  ERR_QUEUE_NOT_FOUND: 404, // the first task of a queue creates it
  ERR_INSPECTOR_CLOSED: 503,
  ERR_CLIENT_CLOSED: 503,
};

export interface ShopOptions {
  /** Where tasks are kept. The shop does not close it. */
  readonly broker: Broker;
  /** Port to listen on; 0 is a free one. */
  readonly port: number;
  readonly workers: number;
  /** Address of the payment provider. */
  readonly payments: string;
  /** When sales are reported, as a scheduler reads it. */
  readonly reportAt: string;
  readonly report: (text: string) => void;
}

export class Shop {
  readonly #options: ShopOptions;
  readonly #client: Client;
  readonly #inspector: Inspector;
  readonly #scheduler: Scheduler;
  readonly #server: Server;
  readonly #http = createServer();

  constructor(options: ShopOptions) {
    const { broker, workers } = options;
    this.#options = options;
    this.#client = new Client({ broker });
    this.#inspector = new Inspector({ broker });
    this.#scheduler = new Scheduler({ broker });
    this.#server = new Server({
      broker,
      concurrency: workers,
      queues: { payments: 6, warehouse: 3, reports: 1 }, // shares of the work, while every queue has some
      retryDelayMs: (retried) => 100 * 2 ** retried,
      delayedTaskCheckIntervalMs: 200, // on Redis, retries are due by polling
      leaseMs: 5_000, // on Redis, what a killed process was doing runs again about a minute later
      groupGracePeriodMs: 1_000, // an order waits so long for others of its pick list
      groupMaxSize: 6, // as many as fit on a cart
      groupAggregator: async (warehouse, tasks) => {
        const packed = await Promise.all(tasks.map((task) => packOrder.parse(task.json())));
        return printPickList.task({ warehouse, orders: packed.map((one) => one.order) });
      },
    });
    const admin = tasksHandler({ broker, rootPath: '/admin', readOnly: true });
    this.#http.on('request', (request: IncomingMessage, response: ServerResponse) => {
      admin(request, response, () => void this.#respond(request, response));
      response.once('close', () => {
        // A connection that is kept alive would keep a closed server waiting.
        if (!this.#http.listening) this.#http.closeIdleConnections();
      });
    });
  }

  /** Returns the address. */
  async start(): Promise<string> {
    const { report, reportAt, port } = this.#options;
    const mux = new ServeMux()
      .use(this.#logged)
      .handle(chargeOrder, async ({ data }, context) => {
        await context.writeResult({ receipt: await this.#charge(data, context.signal) });
        await this.#pack(data.id);
      })
      .handle(printPickList, ({ data }) => {
        report(`pick list for ${data.warehouse}: ${data.orders.join(' ')}`);
      })
      .handle(reportSales, async () => {
        if (!(await this.#inspector.queues()).includes(PAYMENTS)) return; // the first order creates the queue
        const { processed, failed } = await this.#inspector.getQueueInfo(PAYMENTS);
        report(`report of today: ${processed} runs of payments, ${failed} of them failed`);
      });
    await this.#server.start(mux);
    this.#scheduler.register(reportAt, reportSales.task({}));
    await this.#scheduler.start();
    this.#http.listen(port, '127.0.0.1');
    await once(this.#http, 'listening');
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** Takes no more orders, answers 503 to clients that wait, and finishes the runs. Returns how many tasks are left to do. */
  async close(): Promise<number> {
    const closed = once(this.#http, 'close');
    this.#http.close();
    await Promise.all([closed, this.#inspector.close(), this.#scheduler.shutdown()]);
    await this.#server.shutdown();
    await this.#client.close();
    return this.#unfinished();
  }

  async #charge({ id, cents }: z.infer<typeof order>, signal: AbortSignal): Promise<string> {
    const body = JSON.stringify({ order: id, cents });
    const response = await fetch(this.#options.payments, { method: 'POST', body, signal });
    const receipt = await response.text();
    if (response.status === 402) throw new SkipRetry('the card is declined'); // and will be the next time
    if (!response.ok) throw new Error(`the payment provider answers ${response.status}`);
    return receipt;
  }

  /** Adds the order to the pick list that is being collected. */
  async #pack(id: string): Promise<void> {
    try {
      await this.#client.enqueue(packOrder.task({ order: id }, { group: WAREHOUSE, taskId: `pack-${id}` }));
    } catch (error) {
      if (codeOf(error) !== 'ERR_TASK_ID_CONFLICT') throw error; // an earlier run has done it
    }
  }

  readonly #logged: Middleware = (next) => async (task, context) => {
    const run = `${task.type} ${context.taskId.slice(0, 20)}`;
    try {
      await next(task, context);
      if (context.retryCount > 0) this.#options.report(`${run}: done, at run ${context.retryCount + 1}`);
    } catch (error) {
      this.#options.report(`${run}: ${(error as Error).message}`);
      throw error;
    }
  };

  async #unfinished(): Promise<number> {
    const inspector = new Inspector({ broker: this.#options.broker });
    const infos = await Promise.all((await inspector.queues()).map((queue) => inspector.getQueueInfo(queue)));
    await inspector.close();
    return infos.reduce((sum, { size, completed, archived }) => sum + size - completed - archived, 0);
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const [, orders, id, wait] = new URL(request.url ?? '/', 'http://shop').pathname.split('/');
      const isGet = request.method === 'GET';
      if (orders === 'orders' && request.method === 'POST')
        sendJson(response, 202, await this.#take(request));
      else if (orders === 'orders' && isGet && id !== undefined)
        sendJson(response, 200, orderView(await this.#find(id, wait === 'wait', response)));
      else
        sendJson(response, 404, { error: 'there is POST /orders, GET /orders/ID and GET /orders/ID/wait' });
    } catch (error) {
      const isBadJson = error instanceof SyntaxError;
      const status = isBadJson ? 400 : (STATUS_OF_CODE[codeOf(error) ?? ''] ?? 500);
      if (status === 500) this.#options.report(`error: ${String(error)}`);
      sendJson(response, status, { error: status === 500 ? 'internal error' : (error as Error).message });
    }
  }

  /** The id of the task is that of the order: a client that sends it again, because it got no answer, orders once. */
  async #take(request: IncomingMessage): Promise<object> {
    const wanted = await chargeOrder.parse(await json(request));
    try {
      await this.#client.enqueue(chargeOrder.task(wanted, { taskId: wanted.id }));
    } catch (error) {
      if (codeOf(error) !== 'ERR_TASK_ID_CONFLICT') throw error;
    }
    return { id: wanted.id, wait: `/orders/${wanted.id}/wait` };
  }

  /** Waits no longer than the client does. */
  async #find(id: string, isWaiting: boolean, response: ServerResponse): Promise<TaskInfo> {
    const left = new AbortController();
    response.once('close', () => {
      left.abort();
    });
    try {
      if (isWaiting) return await this.#inspector.waitFor(id, { queue: PAYMENTS, signal: left.signal });
    } catch (error) {
      if (codeOf(error) !== 'ERR_TASK_ARCHIVED') throw error;
    }
    return this.#inspector.getTaskInfo(PAYMENTS, id);
  }
}

function orderView(info: TaskInfo): object {
  const { id, state, retried, lastError } = info;
  return { id, state, retried, lastError, receipt: info.resultJson<{ receipt: string }>()?.receipt };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof EscapementError ? error.code : undefined;
}

function sendJson(response: ServerResponse, status: number, value: object): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(value)}\n`);
}
