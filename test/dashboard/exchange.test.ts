import { get } from 'node:http';
import { afterEach, expect, test, vi } from 'vitest';
import { responseOf, sendToNode, type Outgoing } from '../../src/dashboard/exchange.ts';
import { listen } from '../listen.ts';

afterEach(() => vi.useRealTimers());

/** A response without an end, and the number of its pieces so far. */
function endless(): { outgoing: Outgoing; pieces: () => number; isOver: () => boolean } {
  const state = { pieces: 0, isOver: false };
  const body = async function* (signal: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
      while (!signal.aborted) {
        state.pieces++;
        yield await Promise.resolve(Buffer.alloc(100_000, 'x'));
      }
    } finally {
      state.isOver = true;
    }
  };
  const outgoing = { status: 200, headers: {}, body };
  return { outgoing, pieces: () => state.pieces, isOver: () => state.isOver };
}

/** Waits until no more pieces are made. */
async function stalled(pieces: () => number): Promise<number> {
  for (let before = -1; ;) {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    if (pieces() === before && before > 0) return before;
    before = pieces();
  }
}

test('a client of a stream that does not read for half a minute is disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { outgoing, pieces, isOver } = endless();
  const port = await listen(
    (request, response) => void sendToNode(outgoing, request, response, new AbortController()),
  );
  const client = get({ host: '127.0.0.1', port, agent: false });
  client.on('error', () => undefined);
  const ended = new Promise((resolve) => {
    client.on('response', (response) => {
      response.on('error', resolve); // not read
    });
    client.on('close', resolve);
  });
  expect(await stalled(pieces)).toBeLessThan(100);
  vi.advanceTimersByTime(29_000);
  expect(isOver()).toBe(false);
  vi.advanceTimersByTime(1_000);
  await expect.poll(isOver).toBe(true);
  client.destroy();
  await ended;
});

test('a stream of fetch is made when it is read, and ends if it is not read for half a minute', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { outgoing, pieces, isOver } = endless();
  const controller = new AbortController();
  const onEnd = vi.fn();
  const response = responseOf(outgoing, controller, onEnd);
  expect(pieces()).toBe(0);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  expect((await reader.read()).value).toHaveLength(100_000);
  vi.advanceTimersByTime(29_000);
  expect((await reader.read()).value).toHaveLength(100_000);
  expect(pieces()).toBe(2);
  vi.advanceTimersByTime(30_000);
  await expect(reader.read()).rejects.toThrow('has not read');
  expect(controller.signal.aborted).toBe(true);
  expect(onEnd).toHaveBeenCalledOnce();
  expect(isOver()).toBe(true);
});

test('a stream of fetch ends when its client leaves after it has read a piece', async () => {
  const { outgoing, isOver } = endless();
  const controller = new AbortController();
  const response = responseOf(outgoing, controller, () => undefined);
  await (response.body as ReadableStream<Uint8Array>).getReader().read();
  controller.abort();
  await new Promise(setImmediate);
  expect(isOver()).toBe(true);
});

test('a stream of fetch ends when its reader cancels it', async () => {
  const { outgoing, isOver } = endless();
  const onEnd = vi.fn();
  const response = responseOf(outgoing, new AbortController(), onEnd);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await reader.cancel();
  expect(isOver()).toBe(true);
  expect(onEnd).toHaveBeenCalledOnce();
});

test.each(['before there is a response', 'before it has read anything'])(
  'a stream of fetch is over when its client leaves %s',
  (when) => {
    const { outgoing, pieces } = endless();
    const controller = new AbortController();
    const onEnd = vi.fn();
    if (when === 'before there is a response') controller.abort();
    responseOf(outgoing, controller, onEnd);
    controller.abort();
    expect(onEnd.mock.calls).toEqual([[]]);
    expect(pieces()).toBe(0);
  },
);

test('a stream of fetch that is cancelled while it waits for a piece reports no error', async () => {
  const body = async function* (signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield Buffer.from('first');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };
  const onEnd = vi.fn();
  const response = responseOf({ status: 200, headers: {}, body }, new AbortController(), onEnd);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const next = reader.read();
  await new Promise(setImmediate); // the generator waits
  await reader.cancel();
  expect((await next).done).toBe(true);
  expect(onEnd.mock.calls).toEqual([[]]);
});
