import { expect, test, vi } from 'vitest';
import { Client, EmbeddedBroker, Inspector, Task } from 'escapement/tasks';
import type { ChangeLine, SearchLine } from '../../src/dashboard/dashboard-json.ts';
import { serve } from '../tasks/http/serve.ts';
import { serveBench, serveBoard, type Served } from './serve-dashboard.ts';
import { linesOf, openStream } from './streams.ts';

async function search({ send }: Pick<Served, 'send'>, query: string): Promise<SearchLine[]> {
  return linesOf(await send(`/api/search?${query}`)) as SearchLine[];
}

async function found(served: Pick<Served, 'send'>, query: string): Promise<string[]> {
  const lines = await search(served, query);
  expect(lines.at(-1)).toMatchObject({ isDone: true });
  return lines.flatMap(({ tasks = [] }) => tasks.map(({ id }) => id)).sort();
}

async function change({ write }: Pick<Served, 'write'>, body: object): Promise<ChangeLine | undefined> {
  return (linesOf(await write('POST', '/api/search/change', body)) as ChangeLine[]).at(-1);
}

test('a search finds text in types, ids, payloads, errors and results, whatever its case', async () => {
  const bench = await serveBench();
  const { client, broker, add, lease } = bench;
  await add('Apple');
  await client.enqueue(new Task('PEAR:mail', null), { taskId: '1', queue: 'other' });
  await client.enqueue(new Task('a', { name: 'Crème BRÛLÉE' }), { taskId: '2', group: 'g' });
  await client.enqueue(new Task('a', Buffer.alloc(200_000, 'x').fill('needle', 65_533, 65_539)), {
    ...{ taskId: '3', queue: 'big' },
  });
  const failing = await lease();
  await broker.retry(failing, { error: 'Socket Timeout', isFailure: true }, Date.UTC(2027, 0));
  await add('done', { retentionMs: 1e6, queue: 'third' });
  const completing = await lease('third');
  await broker.writeResult(completing, Buffer.from('the RESULT'));
  await broker.complete(completing);
  expect(await found(bench, 'text=apple')).toEqual(['Apple']);
  expect(await found(bench, 'text=pear')).toEqual(['1']);
  expect(await found(bench, 'type=pear:')).toEqual(['1']);
  expect(await found(bench, 'text=br%C3%BBl%C3%A9e')).toEqual(['2']);
  expect(await found(bench, 'payload=NEEDLE')).toEqual(['3']);
  expect(await found(bench, 'error=timeout')).toEqual(['Apple']);
  expect(await found(bench, 'result=result&text=done')).toEqual(['done']);
  expect(await found(bench, 'error=timeout&state=pending')).toEqual([]);
  expect(await found(bench, 'queue=other&queue=third')).toEqual(['1', 'done']);
  expect(await found(bench, 'state=retry&state=completed')).toEqual(['Apple', 'done']);
  const at = bench.clock.wallNow();
  expect(await found(bench, `from=${at - 1}&to=${at + 1}`)).toEqual(['Apple', 'done']);
  expect(await found(bench, `to=${at - 1}`)).toEqual([]);
  expect(await found(bench, 'queue=missing')).toEqual([]);
});

test.each(['state=none', 'from=x', `text=${'x'.repeat(1_001)}`])(
  'a search with an invalid filter is refused: %.20s',
  async (query) => {
    const { send } = await serveBench();
    expect(await send(`/api/search?${query}`)).toMatchObject({ status: 400 });
  },
);

test('a search over 20 000 tasks finds 10, and reads a few hundred at most in a turn of the event loop', async () => {
  await using broker = await EmbeddedBroker.open();
  const client = new Client({ broker });
  for (let at = 0; at < 20_000; at += 1_000) {
    const entries = Array.from({ length: 1_000 }, (_, nth) => {
      const payload = { user: at + nth, note: (at + nth) % 2_000 === 0 ? 'Error: needle' : 'x'.repeat(150) };
      return { task: new Task('mail', payload), options: {} };
    });
    await client.enqueueMany(entries);
  }
  const served = await serveBoard({ broker });
  const reads = vi.spyOn(broker, 'scan');
  let isOver = false;
  let mostReads = 0;
  let readBefore = 0;
  const turn = (): void => {
    const read = reads.mock.calls.length;
    mostReads = Math.max(mostReads, read - readBefore);
    readBefore = read;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const lines = await search(served, 'text=NEEDLE');
  isOver = true;
  expect(lines.at(-1)).toMatchObject({ scanned: 20_000, total: 20_000, matched: 10, isDone: true });
  expect(mostReads).toBe(1);
  expect(Math.max(...reads.mock.calls.map(([, , limit]) => limit))).toBeLessThan(500);
});

test('a search sends 500 matches, and counts the others', async () => {
  const bench = await serveBench();
  for (let nth = 0; nth < 700; nth++) await bench.add(`match ${nth}`);
  const lines = await search(bench, 'id=match');
  expect(lines.at(-1)).toMatchObject({ matched: 700, scanned: 700 });
  expect(lines.flatMap(({ tasks = [] }) => tasks)).toHaveLength(500);
});

test('a client that leaves ends its search', async () => {
  const { add, board, broker } = await serveBench();
  for (let nth = 0; nth < 5_000; nth++) await add(`task ${nth}`);
  let leave: () => void = () => undefined;
  const hasLeft = new Promise<void>((resolve) => (leave = resolve));
  const send = await serve((request, response) => {
    if (request.url === '/api/search?text=left') response.once('close', leave);
    board(request, response);
  });
  const scan = broker.scan.bind(broker);
  const reads = vi.spyOn(broker, 'scan');
  await search({ send }, 'text=nothing');
  const readsOfAll = reads.mock.calls.length;
  reads.mockImplementationOnce(async (...args) => {
    await hasLeft;
    return scan(...args);
  });
  const stream = await openStream((await send('/api/session')).port, '/api/search?text=left', '\n');
  await stream.next();
  stream.leave();
  // It would end at the latest with one that has begun after it.
  await search({ send }, 'text=nothing');
  expect(reads).toHaveBeenCalledTimes(2 * readsOfAll + 1);
});

test('everything that matches is changed, and what the change refuses is counted', async () => {
  const bench = await serveBench();
  for (let nth = 0; nth < 300; nth++) await bench.add(`${nth % 2 === 0 ? 'even' : 'odd'} ${nth}`);
  await bench.lease();
  const archive = { filter: { id: 'EVEN' }, change: 'archive' };
  expect(await change(bench, archive)).toEqual({
    ...{ scanned: 300, total: 300, matched: 150, changed: 149, refused: 1, isDone: true },
  });
  expect(await change(bench, archive)).toMatchObject({ matched: 150, changed: 0, refused: 150 });
  const run = { filter: { state: ['archived'], text: 'even 1' }, change: 'run' };
  expect(await change(bench, run)).toMatchObject({ changed: 55, refused: 0 });
  expect(await change(bench, { filter: {}, change: 'delete' })).toMatchObject({ changed: 299, refused: 1 });
  expect(await new Inspector({ broker: bench.broker }).getQueueInfo('default')).toMatchObject({ size: 1 });
});

test.each([
  {},
  { filter: {} },
  { change: 'run' },
  { filter: [], change: 'run' },
  { filter: { x: 1 }, change: 'run' },
])('a change of a search with an invalid body is refused: %j', async (body) => {
  const { write } = await serveBench();
  expect(await write('POST', '/api/search/change', body)).toMatchObject({ status: 400 });
});
