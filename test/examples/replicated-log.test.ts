import { checkPurgatory } from 'escapement/testing';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { Leader } from '../../examples/replicated-log/leader.ts';
import { eventually } from './support.ts';

/** Longer than any of these tests may take: what waits so long waits for an event. */
const LONG_MS = 60_000;
const SHORT_MS = 40;

let leader: Leader;
let url: string;
let ended: string[];

async function start(sessionMs: number): Promise<void> {
  ended = [];
  leader = new Leader({
    topics: ['orders', 'payments'],
    sessionMs,
    onSessionEnd: (follower) => ended.push(follower),
  });
  url = await leader.listen();
}

beforeEach(() => start(LONG_MS));
afterEach(async () => {
  const purgatories = [leader.produces, leader.fetches, leader.inSync];
  for (const purgatory of purgatories) checkPurgatory(purgatory);
  await leader.close();
  expect(purgatories.map(({ watched, numDelayed }) => watched + numDelayed)).toEqual([0, 0, 0]);
});

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function request(path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url + path, init);
  return { status: response.status, body: await response.json() };
}

function produce(records: object, timeoutMs = LONG_MS, signal?: AbortSignal): Promise<Answer> {
  const init = { method: 'POST', body: JSON.stringify(records), ...(signal && { signal }) };
  return request(`/records?timeoutMs=${timeoutMs}`, init);
}

function consume(offsets: string, waitMs = LONG_MS): Promise<Answer> {
  return request(`/records?${offsets}&waitMs=${waitMs}`);
}

/** Polls as a follower does that has so many records. */
function follow(follower: string, orders: number, payments = 0, waitMs = 0): Promise<Answer> {
  return consume(`orders=${orders}&payments=${payments}&follower=${follower}`, waitMs);
}

async function watchedIs(purgatory: 'produces' | 'fetches', watched: number): Promise<void> {
  await eventually(() => expect(leader[purgatory].watched).toBe(watched));
}

it('a write waits until every in-sync follower has requested what follows', async () => {
  await follow('f1', 0);
  await follow('f2', 0);
  const polls = [follow('f1', 0, 0, LONG_MS), follow('f2', 0, 0, LONG_MS)];
  await watchedIs('fetches', 4); // two topics each
  const answer = produce({ orders: ['a', 'b'] });
  for (const { body } of await Promise.all(polls)) expect(body).toEqual({ orders: ['a', 'b'], payments: [] });

  await follow('f1', 2);
  expect(leader.produces).toMatchObject({ watched: 1, numDelayed: 1, watchedKeys: 1 });
  await follow('f2', 2);

  expect(await answer).toEqual({ status: 200, body: { orders: 2 } });
  expect(leader.produces.watched).toBe(0);
});

it('a write to two topics waits for both', async () => {
  await follow('f1', 0);
  const answer = produce({ orders: ['a'], payments: ['b'] });
  await watchedIs('produces', 2);
  await follow('f1', 1, 0);
  expect(leader.produces).toMatchObject({ watched: 2, numDelayed: 1, watchedKeys: 2 });
  await follow('f1', 1, 1);

  expect(await answer).toEqual({ status: 200, body: { orders: 1, payments: 1 } });
});

it('a write is answered 504 with what is missing when its time is over, and its records stay', async () => {
  await follow('f1', 0);
  const { status, body } = await produce({ orders: ['a'] }, SHORT_MS);

  expect(status).toBe(504);
  expect(body).toEqual({ missing: [{ topic: 'orders', offset: 1, behind: ['f1'] }] });
  await follow('f1', 1);
  expect(await consume('orders=0')).toMatchObject({ body: { orders: ['a'] } });
});

it('a write is forgotten, on every topic and in the timer, when its client hangs up', async () => {
  await follow('f1', 0);
  const hangUp = new AbortController();
  const answer = produce({ orders: ['a'], payments: ['b'] }, LONG_MS, hangUp.signal);
  await watchedIs('produces', 2);
  hangUp.abort();

  await expect(answer).rejects.toThrow();
  await watchedIs('produces', 0);
  expect(leader.produces).toMatchObject({ numDelayed: 0, watchedKeys: 0 });
});

it('a long poll of a consumer waits for a record that every in-sync follower has, in any of its topics', async () => {
  await follow('f1', 0);
  const answer = consume('orders=0&payments=0');
  const written = produce({ payments: ['a'] });
  await watchedIs('produces', 1);
  await watchedIs('fetches', 2);
  await follow('f1', 0, 1);

  expect(await answer).toEqual({ status: 200, body: { orders: [], payments: ['a'] } });
  expect(await written).toMatchObject({ status: 200 });
});

it('a long poll of a consumer is answered without records when its time is over', async () => {
  expect(await consume('orders=0', SHORT_MS)).toEqual({ status: 200, body: { orders: [] } });
});

it('a follower that is not heard of leaves the in-sync set, which completes the writes that wait for it', async () => {
  await leader.close();
  await start(200);
  await follow('f1', 0);

  expect(await produce({ orders: ['a'] })).toMatchObject({ status: 200 });
  expect(ended).toEqual(['f1']);
});

it('a follower stays for as long as its polls come', async () => {
  await leader.close();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  await start(1_500);
  for (let poll = 0; poll < 9; poll++) {
    const polls = [follow('f1', 0, 0, 200), follow('f2', 0, 0, 0)];
    while (leader.fetches.watched < 4) await new Promise(setImmediate); // two topics each
    vi.advanceTimersByTime(200);
    await Promise.all(polls);
  }

  expect(ended).toEqual([]);
  expect(await leader.followersInSync(2, { timeoutMs: 0 })).toBe(2);
});

it('a follower joins the in-sync set when it has caught up, not before', async () => {
  await produce({ orders: ['a'] });
  const joined = leader.followersInSync(1, { timeoutMs: LONG_MS });
  expect((await follow('f1', 0)).body).toEqual({ orders: ['a'], payments: [] });
  expect(leader.inSync.watchedKeys).toBe(2);
  await follow('f1', 1);

  expect(await joined).toBe(1);
});

it('a follower that comes back with less than it had is dropped until it has caught up', async () => {
  await follow('f1', 0);
  const written = produce({ orders: ['a'] });
  await watchedIs('produces', 1);
  await follow('f1', 1);
  await written;
  await follow('f1', 0); // its process was started again

  expect(await produce({ orders: ['b'] })).toMatchObject({ status: 200 });
  await expect(leader.followersInSync(1, { timeoutMs: SHORT_MS })).rejects.toMatchObject({
    code: 'ERR_OPERATION_EXPIRED',
  });
  await follow('f1', 2);
  expect(await leader.followersInSync(1, { timeoutMs: 0 })).toBe(1);
});

it('the leader answers every pending request when it is closed', async () => {
  await follow('f1', 0);
  const pending = [produce({ orders: ['a'] }), consume('payments=0')];
  const inSync = leader.followersInSync(2, { timeoutMs: LONG_MS });
  const outcome = expect(inSync).rejects.toMatchObject({ code: 'ERR_PURGATORY_CLOSED' });
  await watchedIs('produces', 1);
  await watchedIs('fetches', 1);
  await leader.close();

  expect((await Promise.all(pending)).map(({ status }) => status)).toEqual([503, 503]);
  await outcome;
  await start(LONG_MS);
});

it.each([
  ['GET', '/records?refunds=0', 400, "no topic 'refunds'"],
  ['GET', '/records?orders=-1', 400, "orders must be an integer >= 0. Received '-1'"],
  ['GET', '/records?orders=0&waitMs=soon', 400, 'Received NaN'],
  ['GET', '/records', 400, 'key'],
  ['POST', '/records', 400, 'expected array'],
  ['GET', '/nowhere', 404, 'there is only /records'],
])('the leader answers %s %s with %i and the reason', async (method, path, status, error) => {
  const init = method === 'POST' ? { method, body: '{ "orders": "a" }' } : {};
  const answer = await request(path, init);

  expect(answer.status).toBe(status);
  expect((answer.body as { error: string }).error).toContain(error);
});
