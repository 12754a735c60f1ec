import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from 'escapement';
import { Client, Task, type HttpClientOptions, type RequestHeaders } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { freePort } from '../../free-port.ts';
import { listen } from '../../listen.ts';
import { openBench } from '../support/bench.ts';
import { LONG_MS, openClient, openRemote, passing } from './remote.ts';

const unavailable = (reason: RegExp): object => ({
  ...{ code: 'ERR_BROKER_UNAVAILABLE', message: expect.stringMatching(reason) as string },
});

/** A client of a server that is down, and when it has tried to connect. */
async function openUnconnected(
  options: Partial<HttpClientOptions>,
): Promise<{ readonly client: Client; readonly time: ManualClock; readonly attempts: readonly number[] }> {
  const time = new ManualClock();
  const attempts: number[] = [];
  const headers = (): RequestHeaders => {
    attempts.push(time.now());
    return {};
  };
  const url = `http://127.0.0.1:${await freePort()}`;
  return { client: new Client({ url, clock: time, headers, ...options }), time, attempts };
}

describe('retries', () => {
  test('a request whose answer is lost is not sent again, and its taskId shows that the task is enqueued', async () => {
    let requests = 0;
    const { client, inspector } = await openRemote({}, {}, (handle, _, response) => {
      if (++requests === 1) response.writeHead = () => response.destroy();
      handle();
    });
    const task = new Task('a', 1, { taskId: 'a' });
    await expect(client.enqueue(task)).rejects.toMatchObject(unavailable(/^cannot reach http:/));
    expect(requests).toBe(1);
    await expect(client.enqueue(task)).rejects.toMatchObject({ code: 'ERR_TASK_ID_CONFLICT' });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: 1 });
  });

  test.each([500, 502, 503, 504])('a request is not sent again after a response of %i', async (status) => {
    let requests = 0;
    const { client, url } = await openRemote({}, {}, (_handle, _, response) => {
      requests++;
      response.writeHead(status).end('<html>busy</html>');
    });
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject({
      ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'Client.enqueue' },
      message: `${url}: the request is refused (HTTP ${status})`,
    });
    expect(requests).toBe(1);
  });

  test.each([0, 3])('without a connection there are at most maxRetries retries: %i', async (maxRetries) => {
    const { client, time, attempts } = await openUnconnected({ maxRetries, timeoutMs: LONG_MS });
    await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject(
      unavailable(/ECONNREFUSED/),
    );
    expect(attempts).toHaveLength(maxRetries + 1);
    const pauses = attempts.slice(1).map((atMs, nth) => atMs - (attempts[nth] as number));
    for (const [nth, pauseMs] of pauses.entries()) expect(pauseMs).toBeGreaterThanOrEqual(50 * 2 ** nth);
  });

  test.each([
    [{ code: 'ECONNREFUSED' }, 2],
    [{ code: 'ENOTFOUND', syscall: 'getaddrinfo' }, 2],
    [{ code: 'EAI_AGAIN' }, 2],
    [{ code: 'UND_ERR_CONNECT_TIMEOUT' }, 2],
    [{ code: 'ENETUNREACH', syscall: 'connect' }, 2],
    [{ code: 'ETIMEDOUT', errors: [{ code: 'ETIMEDOUT', syscall: 'connect' }, { code: 'ECONNREFUSED' }] }, 2],
    [{ code: 'ETIMEDOUT', errors: [{ code: 'ETIMEDOUT', syscall: 'read' }, { code: 'ECONNREFUSED' }] }, 1],
    [{ code: 'ETIMEDOUT', syscall: 'read' }, 1],
    [{ code: 'ECONNRESET' }, 1],
    [{ code: 'UND_ERR_SOCKET' }, 1],
  ])('a call that fails with %j makes %i attempts', async (fields, attempts) => {
    const cause = Object.assign(new Error('no connection'), fields);
    const fetch = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed', { cause }));
    onTestFinished(() => {
      fetch.mockRestore();
    });
    const time = new ManualClock();
    const client = new Client({ url: 'http://x', clock: time, timeoutMs: LONG_MS, maxRetries: 1 });
    await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject(unavailable(/^cannot/));
    expect(fetch).toHaveBeenCalledTimes(attempts);
  });

  test('a server that is down is unavailable', async () => {
    const time = new ManualClock();
    const url = `http://127.0.0.1:${await freePort()}`;
    const client = new Client({ url, clock: time });
    await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject({
      ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'Client.enqueue', cause: expect.any(Error) as Error },
      message: expect.stringContaining(`cannot reach ${url}: connect ECONNREFUSED`) as string,
    });
    const [outcome] = await passing(time, client.enqueueMany([new Task('a')]));
    expect(outcome).toMatchObject({ status: 'rejected', reason: { op: 'Client.enqueueMany' } });
  });

  test('a server that comes back gets the task', async () => {
    const time = new ManualClock();
    const port = await freePort();
    const client = new Client({ url: `http://127.0.0.1:${port}`, clock: time, timeoutMs: LONG_MS });
    const enqueued = client.enqueue(new Task('a', 1, { taskId: 'a' }));
    while (time.pendingWakeups === 0) await new Promise(setImmediate);
    const { broker, inspector } = await openBench();
    await listen(tasksHandler({ broker }), port);
    await passing(time, enqueued);
    expect(await inspector.getTaskInfo('default', 'a')).toMatchObject({ state: 'pending' });
  });

  test('a server that does not answer in time is unavailable, and gets no second request', async () => {
    const time = new ManualClock();
    let requests = 0;
    const client = await openClient(
      (_, response) => {
        requests++;
        response.writeHead(200).write('{'); // and no more
      },
      { clock: time, timeoutMs: 1_000, maxRetries: 1 },
    );
    const enqueued = client.enqueue(new Task('a'));
    await expect.poll(() => requests).toBe(1);
    await expect(passing(time, enqueued)).rejects.toMatchObject(unavailable(/no response within 1000 ms$/));
    expect(requests).toBe(1);
  });

  test.each([
    ['', 'ERR_BROKER_REFUSED'],
    ['<html>', 'ERR_BROKER_REFUSED'],
    ['null', 'ERR_BROKER_REFUSED'],
    ['{}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[null]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[{}]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[{"task":{}}]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[{"task":null}]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[{"error":{"code":5,"message":"a"}}]}', 'ERR_BROKER_REFUSED'],
    ['{"outcomes":[{"error":{"code":"__proto__","message":"a"}}]}', 'ERR_BROKER_UNAVAILABLE'],
    ['{"outcomes":[{"error":{"code":"ERR_NEW","message":"a"}}]}', 'ERR_BROKER_UNAVAILABLE'],
  ])('a hostile answer is an error: %s', async (text, code) => {
    const client = await openClient((_, response) => response.end(text));
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject({ code });
  });
});

test('the signal ends attempts with its reason, and leaves no listener', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const added = vi.spyOn(signal, 'addEventListener');
  const removed = vi.spyOn(signal, 'removeEventListener');
  let requests = 0;
  const client = await openClient(() => requests++, { signal, maxRetries: 5, clock: new ManualClock() });
  const all = Promise.allSettled(Array.from({ length: 20 }, () => client.enqueue(new Task('a'))));
  await expect.poll(() => requests).toBe(20);
  const reason = new Error('stop');
  controller.abort(reason);
  for (const one of await all) expect(one).toMatchObject({ status: 'rejected', reason });
  await client.close();
  await expect(new Client({ url: 'http://x', signal }).enqueue(new Task('a'))).rejects.toBe(reason);
  expect(requests).toBe(20);
  expect(added).toHaveBeenCalledOnce();
  expect(removed).toHaveBeenCalledOnce();
});

test('the signal ends the pause between two attempts', async () => {
  const controller = new AbortController();
  const clock = new ManualClock();
  const timeouts = vi.spyOn(clock, 'setTimeout');
  const url = `http://127.0.0.1:${await freePort()}`;
  const enqueued = new Client({ url, signal: controller.signal, clock }).enqueue(new Task('a'));
  await expect.poll(() => timeouts.mock.lastCall?.[1]).toBeLessThanOrEqual(100);
  const reason = new Error('stop');
  controller.abort(reason);
  await expect(enqueued).rejects.toBe(reason);
  expect(clock.pendingWakeups).toBe(0);
});

test('the signal ends a call whose headers are pending, and close then resolves', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const headers = vi.fn(() => new Promise<never>(() => undefined));
  const removed = vi.spyOn(signal, 'removeEventListener');
  const client = new Client({ url: 'http://127.0.0.1:9', headers, signal });
  const enqueued = client.enqueue(new Task('a'));
  const closed = client.close();
  const reason = new Error('stop');
  controller.abort(reason);
  await expect(enqueued).rejects.toBe(reason);
  await closed;
  expect(removed).toHaveBeenCalledOnce();
  await expect(new Client({ url: 'http://x', headers, signal }).enqueue(new Task('a'))).rejects.toBe(reason);
  expect(headers).toHaveBeenCalledOnce();
});
