import { connect } from 'node:net';
import { expect, test, vi } from 'vitest';
import { ManualClock, SystemTimer } from 'escapement';
import type { EmbeddedBroker } from 'escapement/tasks';
import { flakyBroker } from 'escapement/testing';
import { resolveDashboardOptions } from '../../src/dashboard/dashboard-options.ts';
import { serveDashboard } from '../../src/dashboard/dashboard.ts';
import { BrokerSource } from '../../src/dashboard/tasks-source.ts';
import { serve } from '../tasks/http/serve.ts';
import { openBench } from '../tasks/support/bench.ts';
import { until } from '../until.ts';
import { serveBench, serveBoard } from './serve-dashboard.ts';
import { eventWith, nextEvent, openEvents, openStream, type OpenStream } from './streams.ts';

/** A dashboard whose time stands still. */
async function serveStill(broker?: EmbeddedBroker) {
  const bench = await openBench();
  const clock = new ManualClock({ wallMs: Date.UTC(2026, 10, 23, 12) });
  const source = new BrokerSource(broker ?? bench.broker);
  const reads = vi.spyOn(source, 'queueInfos');
  const board = serveDashboard(resolveDashboardOptions({ broker: bench.broker }), source, clock);
  const { port } = await (await serve(board))('/api/session');
  return { ...bench, clock, board, reads, source, port };
}

/** Reads a stream to its end: an event of the last second may come before. */
async function untilEnd(stream: OpenStream): Promise<void> {
  while ((await nextEvent(stream)) !== undefined);
}

test('fifty clients of the stream cost one read of the broker a second', async () => {
  const { add, clock, reads, port } = await serveStill();
  await add('a');
  const streams = await Promise.all(Array.from({ length: 50 }, () => openStream(port)));
  await Promise.all(streams.map(nextEvent));
  clock.advance(1_000);
  await Promise.all(streams.map(nextEvent));
  reads.mockClear();
  for (let second = 0; second < 5; second++) {
    clock.advance(1_000);
    for (const event of await Promise.all(streams.map(nextEvent))) {
      expect(event).toMatchObject({ queues: [{ queue: 'default', pending: 1 }], queueCount: 1 });
    }
  }
  expect(reads).toHaveBeenCalledTimes(5);
});

test('without a stream the broker is read once a minute, for the chart of the day', async () => {
  const { add, lease, broker, clock, reads, board } = await serveStill();
  await add('a');
  clock.advance(60_000);
  const send = await serve(board);
  for (let minute = 0; minute < 3; minute++) {
    await broker.complete(await lease());
    await add(`b${minute}`);
    await new Promise(setImmediate); // the read before has ended
    clock.advance(60_000);
    await expect.poll(() => reads.mock.calls.length).toBe(minute + 3);
  }
  const { json } = await send('/api/history?span=day&queue=default');
  expect(json).toMatchObject({ processedPerS: [0, 0.017, 0.017, 0.017] });
});

test('a broker that is slow is read for a tenth of the time at most', async () => {
  const { clock, reads, port } = await serveStill();
  const stream = await openStream(port);
  await nextEvent(stream);
  let answer: (infos: []) => void = () => undefined;
  reads.mockImplementationOnce(() => new Promise((resolve) => (answer = resolve)));
  clock.advance(1_000);
  clock.advance(1_500);
  reads.mockClear();
  answer([]);
  await nextEvent(stream);
  clock.advance(12_000);
  expect(reads).not.toHaveBeenCalled();
  clock.advance(3_000);
  expect(reads).toHaveBeenCalledOnce();
});

test('the stream reports that the broker is unavailable, keeps the queues, and recovers by itself', async () => {
  const { broker, add } = await openBench();
  await add('a');
  const flaky = flakyBroker(broker, { failRate: 1 });
  flaky.isFlaky = false;
  const { send } = await serveBoard({ broker: flaky });
  const stream = await openEvents(send);
  expect(await nextEvent(stream)).toMatchObject({ queueCount: 1 });
  flaky.isFlaky = true;
  const away = await eventWith(stream, ({ unavailable }) => unavailable !== undefined);
  expect(away).toMatchObject({ queues: [{ queue: 'default' }] });
  const unavailable = { status: 503, json: { code: 'ERR_BROKER_UNAVAILABLE' } };
  expect(await send('/api/queues/default')).toMatchObject(unavailable);
  flaky.isFlaky = false;
  const back = await eventWith(stream, ({ unavailable }) => unavailable === undefined);
  expect(back).toMatchObject({ queueCount: 1 });
});

test('a read that does not end is reported after three seconds', async () => {
  const { clock, reads, port } = await serveStill();
  const stream = await openStream(port);
  await nextEvent(stream);
  reads.mockImplementationOnce(() => new Promise(() => undefined));
  clock.advance(1_000);
  clock.advance(3_000);
  expect(await nextEvent(stream)).toMatchObject({ unavailable: 'no answer for 3 s' });
});

test('an event comes every second during a read that does not end, so that no page takes the connection for lost', async () => {
  const { clock, reads, port } = await serveStill();
  const stream = await openStream(port);
  await nextEvent(stream);
  reads.mockImplementationOnce(() => new Promise(() => undefined));
  clock.advance(1_000);
  clock.advance(2_000);
  let event: unknown;
  for (let second = 0; second < 30; second++) {
    clock.advance(1_000);
    event = await nextEvent(stream);
  }
  expect(event).toMatchObject({ unavailable: 'no answer for 3 s' });
});

test('clients that leave are forgotten', async () => {
  const { clock, reads, port } = await serveStill();
  const streams = await Promise.all(Array.from({ length: 10 }, () => openStream(port)));
  await Promise.all(streams.map(nextEvent));
  for (const stream of streams) stream.leave();
  const readsInASecond = (): number => {
    reads.mockClear();
    clock.advance(1_000);
    return reads.mock.calls.length;
  };
  await expect.poll(readsInASecond).toBe(0);
});

test('a client that does not read gets the latest event later, and nothing is buffered for it', async () => {
  const { clock, port, add, reads } = await serveStill();
  for (let nth = 0; nth < 400; nth++) await add('a', { queue: `${'q'.repeat(1_000)}${nth}` });
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  socket.write('GET /api/live HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const readsAfterASecond = (): number => {
    clock.advance(1_000);
    return reads.mock.calls.length;
  };
  await expect.poll(readsAfterASecond).toBeGreaterThan(1);
  const before = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
  for (let second = 0; second < 60; second++) {
    clock.advance(1_000);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  globalThis.gc?.();
  expect(process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed - before).toBeLessThan(20e6);
  socket.destroy();
});

test('close ends all streams, and is idempotent', async () => {
  const { board, send } = await serveBench();
  const { port } = await send('/api/session');
  const streams = await Promise.all(Array.from({ length: 5 }, () => openStream(port)));
  await Promise.all(streams.map(nextEvent));
  board.close();
  board.close();
  for (const stream of streams) await untilEnd(stream);
  expect(await send('/api/session')).toMatchObject({ status: 503 });
  expect(await board.fetch(new Request('http://localhost/'))).toMatchObject({ status: 503 });
});

test('a dashboard that is closed leaves no timers and no listeners of the broker', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const { board, send } = await serveBench();
  const before = timers();
  await send('/api/health');
  const stream = await openEvents(send);
  await nextEvent(stream);
  board.close();
  await untilEnd(stream);
  await until('the timers are as they were', () => timers() <= before);
});

test('timers have samples of their size and their lateness', async () => {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  timer.schedule(1e6, () => undefined);
  const board = serveDashboard(resolveDashboardOptions({ timers: [timer] }), undefined, clock);
  const send = await serve(board);
  const stream = await openEvents(send);
  expect(await nextEvent(stream)).toMatchObject({ queues: [] });
  clock.advance(1_000);
  expect(await nextEvent(stream)).toMatchObject({ pendingTimers: 2 });
  const { json } = await send('/api/runtime');
  expect(json).toMatchObject({
    timers: [{ history: expect.arrayContaining([1]) as number[], lateness: { medianMs: 0 } }],
  });
  board.close();
});
