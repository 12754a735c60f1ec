import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DiskQueue } from 'escapement/diskqueue';
import { numberedLine, parseNumberedLine } from '../../examples/spool/demo/numbered-line.ts';
import { Totals } from '../../examples/spool/demo/totals.ts';
import { parseOptions } from '../../examples/spool/options.ts';
import { LineSplitter } from '../../examples/spool/shipper/line-splitter.ts';
import type { Status } from '../../examples/spool/shipper/progress.ts';
import { takeBatch } from '../../examples/spool/shipper/take-batch.ts';
import { parseStatus, statusText } from '../../examples/spool/terminal/status-text.ts';
import { widthOf } from './support.ts';

describe('the line splitter', () => {
  const split = (pieces: readonly string[], maxBytes = 100): string[] => {
    const splitter = new LineSplitter(maxBytes);
    const lines = pieces.flatMap((piece) => splitter.push(Buffer.from(piece)));
    return [...lines, ...splitter.end()].map(String);
  };

  it('puts lines together from pieces, and keeps empty ones', () => {
    expect(split(['a\nb', 'c', '\n', '\nd'])).toEqual(['a', 'bc', '', 'd']);
    expect(split(['a\n'])).toEqual(['a']);
    expect(split([])).toEqual([]);
  });

  it('makes several lines of one that is too long', () => {
    expect(split(['abcdefg\nh'], 3)).toEqual(['abc', 'def', 'g', 'h']);
    expect(split(['abc', 'd', 'ef\n'], 3)).toEqual(['abc', 'def']);
  });

  it('counts the lines of the input, and not the parts of long ones', () => {
    const splitter = new LineSplitter(2);
    splitter.push(Buffer.from('abcde\nf'));
    expect(splitter.completed).toBe(1);
    splitter.end();
    expect(splitter.completed).toBe(2);
  });

  it('gives the same lines wherever the input is cut', () => {
    const piece = fc
      .uint8Array({ maxLength: 12 })
      .map((bytes) => Buffer.from(bytes.map((byte) => byte % 14)));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const [inPieces, whole] = [new LineSplitter(5), new LineSplitter(5)];
        const lines = [...pieces.flatMap((part) => inPieces.push(part)), ...inPieces.end()];
        expect(lines).toEqual([...whole.push(Buffer.concat(pieces)), ...whole.end()]);
      }),
    );
  });
});

describe('a batch', () => {
  const NEVER = new AbortController().signal;
  const LIMITS = { lines: 3, bytes: 100, lingerMs: 1 };
  let directory: string;
  let queue: DiskQueue;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spool-parts-'));
    queue = await DiskQueue.open({ name: 'lines', dataPath: directory });
  });
  afterEach(async () => {
    await queue.close();
    await rm(directory, { recursive: true });
  });

  async function put(...lines: readonly string[]): Promise<void> {
    await Promise.all(lines.map((line) => queue.put(Buffer.from(line))));
  }

  it('is what there is, up to its limits', async () => {
    await put('a', 'b', 'c', 'd'.repeat(100), 'e', 'f');

    const batches = [];
    for (let i = 0; i < 3; i++) batches.push(await takeBatch(queue, LIMITS, NEVER));
    expect(batches.map((batch) => batch.map(({ data }) => data.length))).toEqual([[1, 1, 1], [100], [1, 1]]);
    expect(queue.depth).toBe(6);
  });

  it('takes what comes while it waits for more', async () => {
    await put('a');
    const batch = takeBatch(queue, { ...LIMITS, lines: 2, lingerMs: 30_000 }, NEVER);
    await put('b');

    expect(await batch).toHaveLength(2);
  });

  it('is not waited for any more when the signal fires, and nothing is gone with it', async () => {
    const stop = new AbortController();
    const batch = takeBatch(queue, LIMITS, stop.signal);
    stop.abort();

    await expect(batch).rejects.toThrow('aborted');
    await put('a');
    expect(await takeBatch(queue, LIMITS, NEVER)).toHaveLength(1);
  });
});

const STATUS: Status = { pid: 7, depth: 3, bytes: 240, taken: 9, forwarded: 5, retries: 2, rejected: 1 };

describe('a status', () => {
  it('is a line, and can be read back', () => {
    expect(statusText(STATUS)).toBe(
      'status pid=7 depth=3 bytes=240 taken=9 forwarded=5 retries=2 rejected=1',
    );
    expect(parseStatus(statusText(STATUS))).toEqual(STATUS);
    expect(parseStatus('the collector takes lines again')).toBeUndefined();
  });

  it('of several shippers is the sum of what they did, and the spool of the last', () => {
    const totals = new Totals();
    totals.add(STATUS);
    totals.add({ ...STATUS, taken: 10 });
    const sum = totals.add({ ...STATUS, pid: 8, depth: 2, taken: 1, forwarded: 0 });

    expect(sum).toEqual({ pid: 8, depth: 2, bytes: 240, taken: 11, forwarded: 5, retries: 4, rejected: 2 });
    expect(totals.deepest).toBe(3);
  });
});

describe('a numbered line', () => {
  it('is known by its numbers, to the last byte', () => {
    const text = numberedLine({ number: 1_234, run: 2 });

    expect(text).toHaveLength(100);
    expect(parseNumberedLine(text)).toEqual({ number: 1_234, run: 2 });
    expect(parseNumberedLine(text.slice(1))).toBeUndefined();
    expect(parseNumberedLine(text.slice(0, -1))).toBeUndefined();
    expect(parseNumberedLine(text.replace('run=2', 'run=x'))).toBeUndefined();
  });
});

describe('the options of the spool', () => {
  let printed = '';
  beforeEach(() => {
    printed = '';
    const print = (text: string | Uint8Array): boolean => {
      printed += String(text);
      return true;
    };
    vi.spyOn(process.stdout, 'write').mockImplementation(print);
    vi.spyOn(process.stderr, 'write').mockImplementation(print);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    ['--durability', 'never'],
    ['--max-bytes', '1000'],
    ['--batch', '0'],
    ['--drain', '-1'],
    ['--forward', 'ftp://host/'],
    ['--forward', 'host:80'],
    ['--duration', '0'],
  ])('refuse %s %j and name both', (option, value) => {
    expect(parseOptions([option, value])).toBe(2);
    expect(printed).toContain(`option '${option} `);
    expect(printed).toContain(`argument '${value}' is invalid`);
  });

  it('refuse one half of the two that go together', () => {
    expect(parseOptions(['--spool', 'here'])).toBe(2);
    expect(parseOptions(['--forward', 'http://host/'])).toBe(2);
    expect(printed.match(/--spool and --forward go together/g)).toHaveLength(2);
  });

  it('are explained by --help', () => {
    expect(parseOptions(['--help'])).toBe(0);
    expect(widthOf(printed)).toBeLessThanOrEqual(80);
    for (const option of ['--spool', '--forward', '--confirm', '--drain', '--max-retry', '--rate'])
      expect(printed).toContain(option);
  });

  it('choose the mode', () => {
    expect(parseOptions(['--duration', '1.5', '--durability', 'os'])).toEqual({
      mode: 'demo',
      durationMs: 1_500,
      ratePerSecond: 2_000,
      durability: 'os',
    });
    expect(parseOptions(['--spool', '/var/spool/app', '--forward', 'https://host/lines'])).toEqual({
      mode: 'ship',
      directory: '/var/spool/app',
      url: 'https://host/lines',
      durability: 'always',
      maxBytes: 2 ** 30,
      batchLines: 500,
      drainMs: 30_000,
      maxRetryMs: 10_000,
      statusMs: 10_000,
      isConfirming: false,
    });
  });
});
