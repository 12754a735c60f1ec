import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Shipper, type ShipperOptions } from '../../examples/spool/shipper/shipper.ts';

/** Longer than any test. */
const NEVER_MS = 600_000;
const KIB = 1024;

let directory: string;
let server: Server;
/** What it does with a request. */
let answer: (lines: readonly string[], response: ServerResponse) => void;
/** The lines that it has accepted. */
let collected: string[];
let connections: number;
let said: string[];
let confirmed: number;
let shipper: Shipper;
let input: PassThrough;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-shipper-'));
  [collected, said, connections, confirmed] = [[], [], 0, 0];
  answer = accept;
  input = new PassThrough();
  server = createServer((request, response) => {
    void text(request).then((body) => {
      answer(body.split('\n').slice(0, -1), response);
    });
  });
  server.on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await rm(directory, { recursive: true });
});

function accept(lines: readonly string[], response: ServerResponse): void {
  collected.push(...lines);
  response.writeHead(204).end();
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end('no');
}

async function open(changes: Partial<ShipperOptions> = {}): Promise<void> {
  shipper = await Shipper.open({
    directory,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/lines`,
    durability: 'always',
    maxBytes: 1_000 * KIB,
    batchLines: 4,
    drainMs: NEVER_MS,
    maxRetryMs: 50,
    say: (line) => said.push(line),
    onTaken: (count) => {
      confirmed = count;
      input.emit('taken', count);
    },
    ...changes,
  });
}

/** Resolves when so many lines of the input are in the spool. */
async function taken(count: number): Promise<void> {
  while (confirmed < count) await once(input, 'taken');
}

function linesOf(...numbers: readonly number[]): string {
  return numbers.map((number) => `line ${number}\n`).join('');
}

describe('the shipper', () => {
  it('forwards every line in order over connections that it keeps, and ends with its input', async () => {
    await open({ batchLines: 1 });
    input.end(linesOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));

    expect(await shipper.run(input)).toEqual({ kept: 0, leftOut: 0 });
    expect(collected.join('\n')).toBe(linesOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).trimEnd());
    expect(connections).toBeLessThanOrEqual(2); // `fetch` may take the second before the first one is free again
    expect(confirmed).toBe(10);
    expect(shipper.status).toMatchObject({ depth: 0, bytes: 0, taken: 10, forwarded: 10, retries: 0 });
  });

  it('keeps a line until the answer is here', async () => {
    await open();
    const asked = new Promise<ServerResponse>((resolve) => {
      answer = (_lines, response) => {
        resolve(response);
      };
    });
    input.write(linesOf(1));
    const running = shipper.run(input);
    const response = await asked;

    expect(shipper.status).toMatchObject({ depth: 1, bytes: 6, forwarded: 0 });
    response.writeHead(200).end();
    input.end();
    expect(await running).toMatchObject({ kept: 0 });
  });

  it('repeats what is answered 5xx, 429 or not at all, and says so once', async () => {
    const troubles: ((response: ServerResponse) => void)[] = [
      (response) => {
        refuse(response, 503);
      },
      (response) => {
        refuse(response, 503);
      },
      (response) => {
        refuse(response, 429, { 'retry-after': '0.01' });
      },
      (response) => response.destroy(),
    ];
    answer = (lines, response) => {
      const trouble = troubles.shift();
      if (trouble === undefined) accept(lines, response);
      else trouble(response);
    };
    await open();
    input.end(linesOf(1, 2));

    expect(await shipper.run(input)).toMatchObject({ kept: 0 });
    expect(collected).toEqual(['line 1', 'line 2']);
    expect(shipper.status.retries).toBe(4);
    expect(said).toEqual([
      'the collector does not take lines: status 503',
      'the collector does not take lines: status 429',
      'the collector does not take lines: other side closed',
      'the collector takes lines again',
    ]);
  });

  it('waits as long as the collector asks', async () => {
    const times: number[] = [];
    answer = (lines, response) => {
      times.push(performance.now());
      if (times.length > 1) accept(lines, response);
      else refuse(response, 503, { 'retry-after': '0.3' });
    };
    await open();
    input.end(linesOf(1));
    await shipper.run(input);

    const [first = NaN, second = NaN] = times;
    expect(second - first).toBeGreaterThanOrEqual(295);
  });

  it('finds the one line that is refused, sets it aside, and forwards the others', async () => {
    answer = (lines, response) => {
      if (lines.includes('line 3')) refuse(response, 422);
      else accept(lines, response);
    };
    await open();
    input.end(linesOf(1, 2, 3, 4, 5));

    expect(await shipper.run(input)).toMatchObject({ kept: 0 });
    expect(collected).toEqual(['line 1', 'line 2', 'line 4', 'line 5']);
    expect(await readFile(join(directory, 'rejected.log'), 'utf8')).toBe('line 3\n');
    expect(shipper.status).toMatchObject({ forwarded: 4, rejected: 1 });
    expect(said).toEqual([
      `the collector refuses a line with 422: it is in ${join(directory, 'rejected.log')}`,
    ]);
  });

  it.each([301, 401, 404])('loses nothing at %i, which says nothing about the lines', async (status) => {
    answer = (_lines, response) => {
      refuse(response, status, { location: '/elsewhere' });
    };
    await open({ drainMs: 0 });
    input.end(linesOf(1, 2));

    expect(await shipper.run(input)).toEqual({ kept: 2, leftOut: 0 });
    expect(existsSync(join(directory, 'rejected.log'))).toBe(false);
  });

  it('forwards what is left of the last time, first', async () => {
    answer = (_lines, response) => {
      refuse(response, 503);
    };
    await open({ drainMs: 0 });
    input.end(linesOf(1, 2));
    expect(await shipper.run(input)).toEqual({ kept: 2, leftOut: 0 });

    input = new PassThrough();
    answer = accept;
    await open();
    expect(shipper.status).toMatchObject({ depth: 2, bytes: 12 });
    input.end(linesOf(3));
    expect(await shipper.run(input)).toEqual({ kept: 0, leftOut: 0 });
    expect(collected).toEqual(['line 1', 'line 2', 'line 3']);
  });

  it('stops between two requests, and lets the one that is under way get its answer', async () => {
    answer = (lines, response) => {
      shipper.stop();
      accept(lines, response);
    };
    await open();
    input.write(linesOf(1, 2, 3, 4, 5, 6));

    expect(await shipper.run(input)).toEqual({ kept: 2, leftOut: 0 });
    expect(collected).toEqual(['line 1', 'line 2', 'line 3', 'line 4']);
  });

  it('reads no more while the spool is full, and goes on when there is room', async () => {
    const line = `${'x'.repeat(KIB - 1)}\n`;
    let isAccepting = false;
    answer = (lines, response) => {
      if (isAccepting) accept(lines, response);
      else refuse(response, 503);
    };
    await open({ maxBytes: 64 * KIB });
    const running = shipper.run(input);
    input.write(line.repeat(60));
    await taken(60);
    input.write(line.repeat(10)); // there is room for four of them
    await expect.poll(() => shipper.status.depth).toBe(64);
    const hasRoom = input.write(line.repeat(30));
    await expect.poll(() => shipper.status.retries).toBeGreaterThan(3);
    expect({ confirmed, unread: input.readableLength, hasRoom }).toEqual({
      confirmed: 60,
      unread: 30 * KIB,
      hasRoom: false,
    });

    isAccepting = true;
    input.end();
    expect(await running).toEqual({ kept: 0, leftOut: 0 });
    expect(collected).toHaveLength(100);
  });

  it('says how many lines were read and had no room when it is stopped', async () => {
    answer = (_lines, response) => {
      refuse(response, 503);
    };
    await open({ maxBytes: 64 * KIB });
    const running = shipper.run(input);
    input.write(`${'x'.repeat(KIB)}\n`.repeat(70));
    await expect.poll(() => shipper.status.depth).toBe(64);
    shipper.stop();

    expect(await running).toEqual({ kept: 64, leftOut: 6 });
    expect(confirmed).toBe(0);
  });

  it('has its spool for itself', async () => {
    await open();
    const first = shipper;

    await expect(open()).rejects.toThrow('is open already');
    input.end();
    await first.run(input);
  });

  it('fails when its input does, and keeps what it has', async () => {
    answer = (_lines, response) => {
      refuse(response, 503);
    };
    await open();
    const running = shipper.run(input);
    input.write(linesOf(1));
    await taken(1);
    input.destroy(new Error('the pipe is broken'));

    await expect(running).rejects.toThrow('the pipe is broken');
    await open();
    expect(shipper.status.depth).toBe(1);
    shipper.stop();
    await shipper.run(new PassThrough());
  });
});
