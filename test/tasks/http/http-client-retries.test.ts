import { describe, expect, test, vi } from 'vitest';
import { ManualClock } from 'escapement';
import { Client, Task } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { freePort } from '../../free-port.ts';
import { listen } from '../../listen.ts';
import { openBench } from '../support/bench.ts';
import { LONG_MS, openClient, openRemote, passing } from './remote.ts';

const unavailable = (reason: RegExp): object => ({
  ...{ code: 'ERR_BROKER_UNAVAILABLE', message: expect.stringMatching(reason) as string },
});

describe('retries', () => {
  test('a connection that is lost after enqueueing leaves one task, which the retry returns', async () => {
    let requests = 0;
    const { client, inspector, time } = await openRemote({}, {}, (handle, _, response) => {
      if (++requests === 1) response.writeHead = () => response.destroy();
      handle();
    });
    const info = await passing(time, client.enqueue(new Task('a', 1)));
    expect(requests).toBe(2);
    expect(await inspector.listPendingTasks('default')).toEqual([info]);
  });

  test('a task that was enqueued and done before the retry is not done again', async () => {
    let requests = 0;
    const { broker, client, inspector, lease, time } = await openRemote({}, {}, (handle, _, response) => {
      if (++requests === 1) {
        response.writeHead = () => {
          void lease().then((task) => broker.complete(task));
          return response.destroy();
        };
      }
      handle();
    });
    await expect(passing(time, client.enqueue(new Task('a', 1)))).resolves.toMatchObject({ type: 'a' });
    expect(requests).toBe(2);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: 0, processed: 1 });
  });

  test.each([502, 503, 504])('a request is tried again after a response of %i', async (status) => {
    const delays: number[] = [];
    let requests = 0;
    const bench = await openRemote({}, {}, (handle, _, response) => {
      delays.push(bench.time.now());
      if (++requests <= 3) response.writeHead(status).end();
      else handle();
    });
    await expect(passing(bench.time, bench.client.enqueue(new Task('a')))).resolves.toBeDefined();
    expect(requests).toBe(4);
    const [first = 0, second = 0, third = 0, last = 0] = delays;
    expect(second - first).toBeGreaterThanOrEqual(50);
    expect(third - second).toBeGreaterThanOrEqual(100);
    expect(last - third).toBeGreaterThanOrEqual(200);
  });

  test.each([
    ['that is refused', 401, 'expired', /: expired \(HTTP 401\)$/],
    ['whose response is not of the API', 200, '<html>log in</html>', /does not respond as the tasks API/],
  ])('a retry %s leaves open whether the task is enqueued', async (_what, status, body, message) => {
    let requests = 0;
    const { client, inspector, time } = await openRemote({}, {}, (handle, _, response) => {
      requests++;
      if (requests === 1) response.writeHead = () => response.destroy();
      if (requests === 1) handle();
      else response.writeHead(status).end(body);
    });
    await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject(unavailable(message));
    expect([requests, await inspector.queues()]).toEqual([2, ['default']]);
  });

  test('a request is tried again at most maxRetries times', async () => {
    for (const maxRetries of [0, 2]) {
      let requests = 0;
      const { client, time, url } = await openRemote({ maxRetries }, {}, (_handle, _, response) => {
        requests++;
        response.writeHead(503).end('<html>busy</html>');
      });
      await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject({
        ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'Client.enqueue' },
        message: `${url}: the request is refused (HTTP 503)`,
      });
      expect(requests).toBe(maxRetries + 1);
    }
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

  test('a server that does not answer in time is unavailable', async () => {
    const time = new ManualClock();
    let requests = 0;
    const client = await openClient(
      (_, response) => {
        requests++;
        response.writeHead(200).write('{'); // and no more
      },
      { clock: time, timeoutMs: 1_000, maxRetries: 1 },
    );
    await expect(passing(time, client.enqueue(new Task('a')))).rejects.toMatchObject(
      unavailable(/no response within 1000 ms$/),
    );
    expect(requests).toBeLessThanOrEqual(2);
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

test('the signal ends attempts and pauses with its reason, and leaves no listener', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const added = vi.spyOn(signal, 'addEventListener');
  const removed = vi.spyOn(signal, 'removeEventListener');
  let requests = 0;
  const client = await openClient(
    (_, response) => {
      if (++requests % 2 === 0) response.writeHead(503).end();
    },
    { signal, maxRetries: 5, clock: new ManualClock() },
  );
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
