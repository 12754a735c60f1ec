import { OverflowQueue } from 'escapement/diskqueue';
import { describe, expect, test } from 'vitest';
import { FakeBackend } from './support/fake-backend.ts';
import { bytes, drain, isPending, openQueue, putAll, rejection, text } from './support/queues.ts';

describe('a loop over messages', () => {
  test('acknowledges a message when it asks for the next one; the one it was left at comes again', async () => {
    const backend = new FakeBackend();
    const queue = new OverflowQueue({ memorySize: 1, backend });
    await putAll(queue, 'abc');
    const seen: string[] = [];
    for await (const data of queue) {
      seen.push(text({ data }));
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['a', 'b']);
    expect([queue.depth, backend.messages.map(text)]).toEqual([2, ['b', 'c']]);
    expect(await drain(queue)).toEqual(['b', 'c']);
  });

  test('ends with the queue; one that is begun then is over', async () => {
    await using queue = new OverflowQueue({ memorySize: 5, backend: new FakeBackend() });
    await queue.put(bytes('a'));
    const seen: string[] = [];
    for await (const data of queue) {
      seen.push(text({ data }));
      setImmediate(() => void queue.close());
    }
    for await (const data of queue) seen.push(text({ data }));
    expect(seen).toEqual(['a']);
    expect(await rejection(queue.put(bytes('b')))).toMatchObject({ code: 'ERR_QUEUE_CLOSED' });
  });
});

test('a put that waits for room in the backend is called back by its signal', async () => {
  const backend = await openQueue({ maxBytesTotal: 3, whenFull: 'wait' });
  const queue = new OverflowQueue({ memorySize: 1, backend });
  await putAll(queue, ['a', 'bcd']);
  const controller = new AbortController();
  const put = queue.put(bytes('e'), { signal: controller.signal });
  expect(await isPending(put)).toBe(true);
  controller.abort('enough');
  expect(await rejection(put)).toBe('enough');
  expect(await rejection(queue.put(bytes('e'), { signal: controller.signal }))).toBe('enough');
  expect(await drain(queue)).toEqual(['a', 'bcd']);
});
