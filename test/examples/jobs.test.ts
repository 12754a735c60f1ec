import type { ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ManualClock } from 'escapement';
import { EmbeddedBroker } from 'escapement/tasks';
import { Shop } from '../../examples/jobs/shop.ts';
import { listen } from '../listen.ts';
import { eventually } from './support.ts';

/** What the payment provider does with the charge of an order. */
let charge: (order: string, response: ServerResponse) => void;
let charges: string[];
/** Time passes where a test lets it. */
let clock: ManualClock;
let broker: EmbeddedBroker;
let shop: Shop;
let url: string;
let reports: string[];

beforeEach(async () => {
  [charges, reports] = [[], []];
  charge = pay;
  const port = await listen((request, response) => {
    void json(request).then((body) => {
      const { order } = body as { order: string };
      charges.push(order);
      charge(order, response);
    });
  });
  clock = new ManualClock({ wallMs: Date.now() });
  broker = await EmbeddedBroker.open({ clock });
  shop = new Shop({
    ...{ broker, port: 0, workers: 2, reportAt: '@every 1s' },
    payments: `http://127.0.0.1:${port}/`,
    report: (text) => reports.push(text),
  });
  url = await shop.start();
});
afterEach(async () => {
  await shop.close().catch(() => undefined); // a test may have closed it
  await broker.close();
});

function pay(order: string, response: ServerResponse): void {
  response.end(`paid ${order}`);
}

function answer(status: number) {
  return (_order: string, response: ServerResponse): unknown => response.writeHead(status).end();
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function get(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url + path, init);
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') ? (JSON.parse(text) as unknown) : text };
}

function send(order: object | string): Promise<Answer> {
  return get('/orders', { method: 'POST', body: typeof order === 'string' ? order : JSON.stringify(order) });
}

async function order(id: string): Promise<void> {
  expect(await send({ id, customer: 'ada', cents: 4_200 })).toMatchObject({ status: 202, body: { id } });
}

/** Resolves when the check passes; a tenth of a second passes before each attempt. */
function inTime(check: () => unknown): Promise<void> {
  return eventually(async () => {
    await clock.advanceAsync(100);
    check();
  });
}

it('the shop charges an order in the background, and shows its receipt', async () => {
  await order('a-1');

  const done = { id: 'a-1', state: 'completed', retried: 0, lastError: '', receipt: 'paid a-1' };
  expect(await get('/orders/a-1/wait')).toEqual({ status: 200, body: done });
  expect(await get('/orders/a-1')).toEqual({ status: 200, body: done });
});

it('the shop charges an order once that is sent twice', async () => {
  await order('a-1');
  await get('/orders/a-1/wait');
  await order('a-1');

  expect(await get('/orders/a-1')).toMatchObject({ body: { state: 'completed' } });
  expect(charges).toEqual(['a-1']);
});

it('the shop tries an order again while the provider is busy', async () => {
  charge = (id, response) => (charges.length < 3 ? answer(503) : pay)(id, response);
  await order('a-1');
  await inTime(() => expect(charges).toHaveLength(3));

  expect(await get('/orders/a-1/wait')).toMatchObject({ body: { state: 'completed', retried: 2 } });
  expect(reports).toContain('order:charge a-1: the payment provider answers 503');
  expect(reports).toContain('order:charge a-1: done, at run 3');
});

it('the shop archives an order at once whose card is declined', async () => {
  charge = answer(402);
  await order('a-1');

  expect(await get('/orders/a-1/wait')).toMatchObject({ body: { state: 'archived', retried: 0 } });
  expect(charges).toEqual(['a-1']);
});

it('the shop makes one pick list of the orders that come within a second', async () => {
  for (const id of ['a-1', 'a-2', 'a-3']) {
    await order(id);
    await get(`/orders/${id}/wait`);
  }

  await inTime(() => expect(reports).toContain('pick list for leipzig: a-1 a-2 a-3'));
  await inTime(() => expect(reports).toContain('report of today: 3 runs of payments, 0 of them failed'));
});

it.each([
  { id: 'a-1', customer: 'ada', cents: 0 },
  { id: 'a/1', customer: 'ada', cents: 1 },
  { id: 'a-1', customer: '', cents: 1 },
  '{ "id": ',
])('the shop refuses %j with 400', async (wrong) => {
  expect(await send(wrong)).toMatchObject({ status: 400 });
  expect(charges).toEqual([]);
});

it.each([
  ['GET', '/orders/a-1', 404],
  ['GET', '/orders/a-1/wait', 404],
  ['GET', '/carts', 404],
  ['DELETE', '/orders/a-1', 404],
  ['GET', '/admin/api/queues', 200],
  ['POST', '/admin/api/queues/payments:pause', 405],
])('the shop answers %s %s with %i, also before there was any order', async (method, path, status) => {
  expect(await get(path, { method })).toMatchObject({ status });
});

it('the shop charges an order all the same when the client that waits for it hangs up', async () => {
  let held: ServerResponse | undefined;
  charge = (_id, response) => (held = response);
  await order('a-1');
  const hangUp = new AbortController();
  const waiting = get('/orders/a-1/wait', { signal: hangUp.signal });
  await eventually(() => expect(held).toBeDefined());
  hangUp.abort();
  await expect(waiting).rejects.toThrow();
  held?.end('paid');

  expect(await get('/orders/a-1/wait')).toMatchObject({ body: { state: 'completed' } });
  expect(reports.filter((text) => text.startsWith('error'))).toEqual([]);
});

it('the shop answers 503 to a client that waits when it closes, and finishes the run', async () => {
  let held: ServerResponse | undefined;
  charge = (_id, response) => (held = response);
  await order('a-1');
  const subscribe = vi.spyOn(broker, 'subscribe');
  const waiting = get('/orders/a-1/wait');
  await eventually(() => expect(subscribe).toHaveBeenCalled()); // for the client
  await eventually(() => expect(held).toBeDefined());
  const closed = shop.close();
  expect(await waiting).toMatchObject({ status: 503 });
  held?.end('paid');

  expect(await closed).toBe(1); // its place on a pick list
});
