import { DiskQueue, DummyBackendQueue, OverflowQueue } from 'escapement/diskqueue';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { FakeBackend } from './support/fake-backend.ts';
import {
  bytes,
  drain,
  isPending,
  openQueue,
  putAll,
  receiveMany,
  rejection,
  settled,
  temporaryFolder,
  text,
} from './support/queues.ts';

const CLOSED = { name: 'EscapementError', code: 'ERR_QUEUE_CLOSED' };

function overflowing(memorySize: number): { queue: OverflowQueue; backend: FakeBackend } {
  const backend = new FakeBackend();
  return { queue: new OverflowQueue({ memorySize, backend }), backend };
}

const left = (backend: FakeBackend): string[] => backend.messages.map(text);

describe('memory first, the backend when it is full', () => {
  test('messages that are handed out take room in memory', async () => {
    const { queue, backend } = overflowing(2);
    await putAll(queue, 'ab');
    expect([queue.depth, backend.depth]).toEqual([2, 0]);
    const [a] = await receiveMany(queue, 2);
    await queue.put(bytes('c'));
    expect([queue.depth, left(backend)]).toEqual([3, ['c']]);
    a?.ack();
    expect(await drain(queue, 1)).toEqual(['c']);
    await queue.put(bytes('d'));
    expect([queue.depth, left(backend)]).toEqual([2, []]);
  });

  test('while the backend has messages that nobody has had, all go there', async () => {
    const { queue, backend } = overflowing(2);
    await putAll(queue, 'abc');
    expect(await drain(queue, 2)).toEqual(['a', 'b']);
    await putAll(queue, 'de');
    expect(left(backend)).toEqual(['c', 'd', 'e']);
    expect(await drain(queue)).toEqual(['c', 'd', 'e']);
    await putAll(queue, 'f');
    expect(left(backend)).toEqual([]);
    expect(await drain(queue)).toEqual(['f']);
  });

  test('also while one is on its way there', async () => {
    const { queue, backend } = overflowing(1);
    backend.delays.push(5);
    await queue.put(bytes('a'));
    const put = queue.put(bytes('b'));
    expect(await drain(queue, 1)).toEqual(['a']);
    await Promise.all([put, queue.put(bytes('c'))]);
    expect(await drain(queue)).toEqual(['b', 'c']);
  });

  test('memorySize 0: everything goes to the backend', async () => {
    const { queue, backend } = overflowing(0);
    await putAll(queue, 'abc');
    expect(left(backend)).toEqual(['a', 'b', 'c']);
    const [a, b] = await receiveMany(queue, 2);
    b?.nack();
    a?.nack();
    expect(await drain(queue)).toEqual(['a', 'b', 'c']);
  });

  test('what the backend has from before comes first', async () => {
    const { queue, backend } = overflowing(5);
    await putAll(backend, 'xy');
    await putAll(queue, 'ab');
    expect(queue.depth).toBe(4);
    expect(await drain(queue)).toEqual(['x', 'y', 'a', 'b']);
  });

  test('whoever waits is served from both, in the order they came', async () => {
    const { queue, backend } = overflowing(1);
    const waiting = Array.from({ length: 4 }, () => queue.receive());
    backend.delays.push(3, 2, 1);
    await putAll(queue, 'abcd');
    expect((await Promise.all(waiting)).map(text)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('memory takes a copy', async () => {
    const { queue } = overflowing(2);
    const buffer = bytes('a');
    await queue.put(buffer);
    buffer.fill('x');
    expect(await drain(queue)).toEqual(['a']);
  });
});

describe('nack: in the old place, whichever part a message is from', () => {
  test.each([[['a', 'c', 'd']], [['d', 'c', 'a']], [['d', 'a']], [['d', 'c']], [['c']], [['a']]])(
    '%j come back, a from memory, c and d from the backend: before e and f, who were not there',
    async (back) => {
      const { queue, backend } = overflowing(2);
      await putAll(queue, 'abcd');
      const deliveries = new Map((await receiveMany(queue, 4)).map((delivery) => [text(delivery), delivery]));
      deliveries.get('b')?.ack();
      await putAll(queue, 'ef');
      expect(left(backend)).toEqual(['c', 'd', 'f']); // so e is in memory
      for (const message of back) deliveries.get(message)?.nack();
      expect(await drain(queue, back.length + 2)).toEqual([...back.sort(), 'e', 'f']);
    },
  );

  test('a message of memory is before one of the backend, and that before a later one of memory', async () => {
    const { queue } = overflowing(2);
    await putAll(queue, 'abc');
    const [a, b, c] = await receiveMany(queue, 3);
    b?.ack();
    await queue.put(bytes('d')); // in memory: somebody has c
    a?.nack();
    c?.nack();
    expect(await drain(queue)).toEqual(['a', 'c', 'd']);
  });

  test('brings back what was put, whatever was done to what was handed out', async () => {
    const { queue } = overflowing(1);
    await putAll(queue, 'ab');
    for (const delivery of await receiveMany(queue, 2)) {
      delivery.data.fill(0);
      delivery.nack();
    }
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('settling twice does nothing', async () => {
    const { queue } = overflowing(1);
    await putAll(queue, 'ab');
    const deliveries = await receiveMany(queue, 2);
    for (const delivery of deliveries) {
      delivery.ack();
      delivery.nack();
      delivery.ack();
    }
    expect(queue.depth).toBe(0);
    expect(await isPending(queue.receive())).toBe(true);
  });
});

describe('abort', () => {
  test('of a receive that waits: it leaves, and takes nothing with it', async () => {
    const { queue } = overflowing(1);
    const controller = new AbortController();
    const waiting = queue.receive({ signal: controller.signal });
    controller.abort('gone');
    expect(await rejection(waiting)).toBe('gone');
    expect(await rejection(queue.receive({ signal: AbortSignal.abort('before') }))).toBe('before');
    await putAll(queue, 'ab');
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('while the backend was asked: what it gives comes later than what is in memory then', async () => {
    const { queue, backend } = overflowing(1);
    await putAll(queue, 'ab');
    await drain(queue, 1);
    backend.delays.push(5);
    const controller = new AbortController();
    const aborted = queue.receive({ signal: controller.signal });
    controller.abort('gone');
    expect(await rejection(aborted)).toBe('gone');
    expect(await drain(queue)).toEqual(['b']);
    backend.failures.push('put'); // somebody waits at the backend for a message that does not come
    await queue.put(bytes('c'));
    expect(((await rejection(queue.put(bytes('lost')))) as Error).message).toMatch(/fails to put/);
    const other = new AbortController();
    expect(await drain(queue)).toEqual(['c']);
    const waiting = queue.receive({ signal: other.signal });
    other.abort('gone');
    await rejection(waiting);
    await putAll(queue, 'de');
    await settled();
    expect(await drain(queue)).toEqual(['d', 'e']);
  });

  test('of one who waited for the backend while its put failed', async () => {
    const { queue, backend } = overflowing(0);
    backend.failures.push('put');
    backend.delays.push(4);
    const lost = rejection(queue.put(bytes('lost')));
    const controller = new AbortController();
    const waiting = rejection(queue.receive({ signal: controller.signal }));
    await lost;
    controller.abort('gone');
    expect(await waiting).toBe('gone');
    await putAll(queue, 'ab');
    await settled();
    expect(await drain(queue)).toEqual(['a', 'b']);
  });
});

describe('a backend that fails', () => {
  test('to put: the put rejects with its error, and the message is nowhere', async () => {
    const { queue, backend } = overflowing(1);
    await queue.put(bytes('a'));
    backend.failures.push('put');
    expect(await rejection(queue.put(bytes('lost')))).toMatchObject({ message: 'the fake fails to put' });
    expect(queue.depth).toBe(1);
    await queue.put(bytes('b'));
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('to receive: whoever waits is told, and the message stays', async () => {
    const { queue, backend } = overflowing(0);
    await queue.put(bytes('a'));
    backend.failures.push('receive');
    const results = await Promise.allSettled([queue.receive(), queue.receive()]);
    for (const result of results)
      expect(result).toMatchObject({ reason: { message: 'the fake fails to receive' } });
    expect(await drain(queue)).toEqual(['a']);
  });

  test('to empty: it rejects; what the backend has comes again', async () => {
    const { queue, backend } = overflowing(1);
    await putAll(queue, 'abc');
    const deliveries = await receiveMany(queue, 2);
    backend.failures.push('empty');
    expect(await rejection(queue.empty())).toMatchObject({ message: 'the fake fails to empty' });
    for (const delivery of deliveries) delivery.ack();
    expect(queue.depth).toBe(2);
    expect(await drain(queue)).toEqual(['b', 'c']);
    await putAll(queue, 'd');
    expect(left(backend)).toEqual([]);
  });
});

describe('empty', () => {
  test('drops what is here and there, and what is handed out', async () => {
    const { queue, backend } = overflowing(2);
    await putAll(queue, 'abcd');
    const deliveries = await receiveMany(queue, 3);
    await queue.empty();
    for (const [i, delivery] of deliveries.entries()) {
      if (i === 1) delivery.nack();
      else delivery.ack();
    }
    expect([queue.depth, backend.depth]).toEqual([0, 0]);
    await putAll(queue, 'xyz');
    expect(left(backend)).toEqual(['z']);
    expect(await drain(queue)).toEqual(['x', 'y', 'z']);
  });

  test('while the backend was asked for a message: none of before comes out', async () => {
    for (const [receiveTurns, emptyTurns] of [
      [1, 5],
      [5, 1],
      [3, 3],
    ] as const) {
      const { queue, backend } = overflowing(0);
      await putAll(queue, 'ab');
      backend.delays.push(receiveTurns);
      const waiting = queue.receive();
      await Promise.resolve();
      backend.delays.push(emptyTurns);
      await queue.empty();
      await putAll(queue, 'xy');
      expect(text(await waiting)).toBe('x');
      expect(await drain(queue, 1)).toEqual(['y']);
      expect(queue.depth).toBe(1);
    }
  });
});

describe('close', () => {
  test('moves what is in memory to the backend, in order, behind what that has, and closes it', async () => {
    const { queue, backend } = overflowing(3);
    await putAll(queue, 'abcdef');
    const deliveries = await receiveMany(queue, 5);
    deliveries[1]?.ack();
    deliveries[3]?.ack();
    await queue.close();
    for (const delivery of deliveries) delivery.ack(); // too late
    expect(left(backend)).toEqual(['e', 'f', 'a', 'c']);
    expect(backend.isClosed).toBe(true);
  });

  test('nothing is lost on a real disk', async () => {
    const dataPath = temporaryFolder();
    const queue = new OverflowQueue({ memorySize: 3, backend: await openQueue({ dataPath }) });
    await putAll(queue, 'abcdef');
    await drain(queue, 1);
    await receiveMany(queue, 3);
    await queue.close();
    const again = new OverflowQueue({ memorySize: 3, backend: await openQueue({ dataPath }) });
    expect(again.depth).toBe(5);
    expect(await drain(again)).toEqual(['d', 'e', 'f', 'b', 'c']);
    await again.close();
  });

  test.each(['reject', 'wait'] as const)(
    'nothing is lost although the disk queue is full: %s',
    async (whenFull) => {
      const dataPath = temporaryFolder();
      const backend = await openQueue({ dataPath, maxBytesTotal: 2, whenFull });
      const queue = new OverflowQueue({ memorySize: 3, backend });
      await putAll(queue, 'abcde');
      const tooMuch = rejection(queue.put(bytes('f')));
      await settled();
      await queue.close();
      expect(await tooMuch).toMatchObject({
        code: whenFull === 'wait' ? 'ERR_QUEUE_CLOSED' : 'ERR_QUEUE_FULL',
      });
      const again = await openQueue({ dataPath, maxBytesTotal: 5 });
      expect(await rejection(again.put(bytes('x')))).toMatchObject({ code: 'ERR_QUEUE_FULL' });
      expect(await drain(again)).toEqual(['d', 'e', 'a', 'b', 'c']);
    },
  );

  test('whoever waits, and whoever comes, is sent away; again it does nothing', async () => {
    const { queue, backend } = overflowing(1);
    const waiting = queue.receive();
    const closing = queue.close();
    expect(await rejection(waiting)).toMatchObject({ ...CLOSED, op: 'OverflowQueue.receive' });
    for (const operation of ['put', 'receive', 'empty', 'delete'] as const) {
      const promise = operation === 'put' ? queue.put(bytes('a')) : queue[operation]();
      expect(await rejection(promise)).toMatchObject({ ...CLOSED, op: `OverflowQueue.${operation}` });
    }
    await Promise.all([closing, queue.close()]);
    await queue.close();
    expect(backend.calls.filter((call) => call === 'close')).toHaveLength(1);
  });

  test('puts on their way there are finished', async () => {
    const { queue, backend } = overflowing(1);
    backend.delays.push(5, 5);
    await queue.put(bytes('a'));
    const puts = putAll(queue, 'bc');
    await queue.close();
    await puts;
    expect(left(backend)).toEqual(['b', 'c', 'a']);
  });

  test('a backend that refuses: it is closed all the same, and the error names all that are lost', async () => {
    const { queue, backend } = overflowing(3);
    await putAll(queue, 'abc');
    backend.failures.push('put', 'put', 'close');
    const error = await rejection(queue.close());
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toHaveLength(3);
    expect((error as Error).message).toContain('2 messages');
    expect(left(backend)).toEqual(['c']);
  });

  test('a backend that only fails to close: its own error', async () => {
    const { queue, backend } = overflowing(3);
    await putAll(queue, 'abc');
    backend.failures.push('close');
    expect(await rejection(queue.close())).toMatchObject({ message: 'the fake fails to close' });
    expect(left(backend)).toEqual(['a', 'b', 'c']);
  });
});

describe('delete', () => {
  test('deletes the backend, and drops what is in memory', async () => {
    const { queue, backend } = overflowing(1);
    await putAll(queue, 'abc');
    await queue.delete();
    expect(backend.calls).toContain('delete');
    expect([queue.depth, backend.depth]).toEqual([0, 0]);
    await queue.close();
    expect(await rejection(queue.put(bytes('a')))).toMatchObject(CLOSED);
  });
});

describe('what is put', () => {
  test('must be bytes, and what the backend takes: it may have to go there', async () => {
    const backend = await openQueue({ maxMessageSize: 3 });
    const queue = new OverflowQueue({ memorySize: 5, backend });
    expect(await rejection(queue.put('text' as never))).toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    expect(await rejection(queue.put(bytes('long')))).toMatchObject({ code: 'ERR_MESSAGE_SIZE' });
    expect(queue.depth).toBe(0);
    await queue.put(bytes('abc'));
    await queue.close();
  });
});

describe('options', () => {
  const backend = new DummyBackendQueue();

  test.each([
    [undefined, 'ERR_INVALID_ARG_TYPE'],
    [{ backend }, 'ERR_INVALID_ARG_TYPE'],
    [{ memorySize: '3', backend }, 'ERR_INVALID_ARG_TYPE'],
    [{ memorySize: -1, backend }, 'ERR_OUT_OF_RANGE'],
    [{ memorySize: 1.5, backend }, 'ERR_OUT_OF_RANGE'],
    [{ memorySize: Infinity, backend }, 'ERR_OUT_OF_RANGE'],
    [{ memorySize: 3 }, 'ERR_INVALID_ARG_TYPE'],
    [{ memorySize: 3, backend: {} }, 'ERR_INVALID_ARG_TYPE'],
    [{ memorySize: 3, backend: DiskQueue }, 'ERR_INVALID_ARG_TYPE'],
  ])('%o are refused', (options, code) => {
    expect(thrownBy(() => new OverflowQueue(options as never))).toMatchObject({ code });
  });
});
