import { expect, test } from 'vitest';
import { inProcess, payloadOf, type Payload, type TaskQueue } from '../../../bench/redis/contestant.ts';

const nowhere = { host: '', port: 0 };

class FakeQueue implements TaskQueue {
  readonly calls: number[] = [];
  atOnce = 0;
  mostAtOnce = 0;
  handle: (payload: Payload) => void = () => undefined;

  async add(payload: Payload): Promise<void> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce);
    await Promise.resolve();
    this.atOnce--;
    this.calls.push(1);
    this.handle(payload);
  }

  addMany(payloads: readonly Payload[]): Promise<void> {
    this.calls.push(payloads.length);
    payloads.forEach(this.handle);
    return Promise.resolve();
  }

  work(_concurrency: number, handle: (payload: Payload) => void): Promise<void> {
    this.handle = handle;
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

test('a payload is 64 bytes of JSON', () => {
  expect(JSON.stringify(payloadOf(0))).toHaveLength(64);
  expect(JSON.stringify(payloadOf(1_234_567))).toHaveLength(64);
});

test('a contestant enqueues the requested number of tasks by the requested number of callers', async () => {
  const queue = new FakeQueue();
  const contestant = await inProcess(() => queue)(nowhere);
  await contestant.start(1);
  await contestant.enqueue(25, 10);
  await contestant.enqueueBulk(25, 10);
  await contestant.handled(50);
  expect(queue.mostAtOnce).toBe(10);
  expect(queue.calls.slice(25)).toEqual([10, 10, 5]);
  expect(contestant.problem()).toBeUndefined();
});

test('a task that is handled twice is a problem', async () => {
  const queue = new FakeQueue();
  const contestant = await inProcess(() => queue)(nowhere);
  await contestant.start(1);
  await contestant.enqueue(2, 1);
  queue.handle(payloadOf(1));
  expect(contestant.problem()).toMatch(/task 1 .*twice/);
});

test('a contestant returns the latency of every task', async () => {
  const contestant = await inProcess(() => new FakeQueue())(nowhere);
  await contestant.start(1);
  const latenciesMs = await contestant.latenciesMs(20, 2_000);
  expect(latenciesMs).toHaveLength(20);
  expect(Math.min(...latenciesMs)).toBeGreaterThanOrEqual(0);
});
