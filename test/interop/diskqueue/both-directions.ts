import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hostFileSystem } from '../../../src/log/file-system.ts';
import { NsqLog } from '../../../src/diskqueue/nsq/nsq-log.ts';
import { folderOfTest } from '../../folder.ts';
import { LARGEST_MESSAGE, type OpenOriginal, type Original } from './original.ts';

/** This library, used as the original is: what is handed out is consumed, and saved with the next thing that happens. */
class Ours implements Original {
  readonly #log: NsqLog;
  #ahead: Awaited<ReturnType<NsqLog['read']>> = [];

  private constructor(log: NsqLog) {
    this.#log = log;
  }

  static async open(folder: string, maxBytesPerFile: number): Promise<Ours> {
    const log = await NsqLog.open({
      ...{ files: hostFileSystem, folder, name: 'q', maxBytesPerFile, maxMessageSize: LARGEST_MESSAGE },
      isAlwaysDurable: true,
      onCorruption: (event) => {
        throw new Error(`damaged: ${JSON.stringify(event)}`);
      },
    });
    return new Ours(log);
  }

  async put(message: Uint8Array): Promise<void> {
    expect(await this.#log.append([message])).toEqual({ appended: 1 });
    await this.#log.sync();
  }

  async receive(): Promise<Buffer | undefined> {
    if (this.#ahead.length === 0) this.#ahead = await this.#log.read();
    const message = this.#ahead.shift();
    if (message === undefined) return undefined;
    this.#log.acknowledge(message);
    await this.#log.saveAcks(true);
    return Buffer.from(message.data);
  }

  depth(): Promise<number> {
    return Promise.resolve(this.#log.depth);
  }

  async empty(): Promise<void> {
    this.#ahead = [];
    await this.#log.empty();
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

export const openOurs: OpenOriginal = (folder, maxBytesPerFile) => Ours.open(folder, maxBytesPerFile);

/** What is done to a queue: so many are received, the queue is emptied, or a message of that length is put. */
type Step = { readonly receive: number } | { readonly put: number } | 'empty';

/** Lengths that fill files of 140 bytes exactly, nearly, not at all, and twice; and more than anybody reads at once. */
const LENGTHS = [
  10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0, 0, 136, 135, 137, 1, 500, 300_000, 7, 60, 60, 61, 0,
];

const SEQUENCES: Record<string, readonly Step[]> = {
  nothing: [],
  'what rolls at an exact fit': LENGTHS.slice(0, 10).flatMap((put) => [{ put }, { put }]),
  'messages of all lengths': LENGTHS.map((put) => ({ put })),
  'all lengths, a part of them received': [...LENGTHS.map((put) => ({ put })), { receive: 15 }],
  'all lengths, all of them received': [...LENGTHS.map((put) => ({ put })), { receive: 100 }],
  'a reader that keeps up': LENGTHS.flatMap((put) => [{ put }, { receive: 1 }]),
  'a reader one behind': [{ put: 3 }, ...LENGTHS.flatMap((put) => [{ put }, { receive: 1 }])],
  'emptying, and more': [
    ...LENGTHS.map((put) => ({ put })),
    { receive: 3 },
    'empty',
    { put: 10 },
    { put: 20 },
  ],
  'emptying at the end': [{ put: 10 }, { put: 200 }, 'empty'],
};

/** The same bytes wherever they are asked for, and no two alike that are long enough. */
function messageOf(number: number, length: number): Buffer {
  const message = Buffer.alloc(length, `${number}.`);
  return message;
}

async function run(queue: Original, steps: readonly Step[], first = 0): Promise<Buffer[]> {
  const received: Buffer[] = [];
  let number = first;
  for (const step of steps) {
    if (step === 'empty') await queue.empty();
    else if ('put' in step) await queue.put(messageOf(number++, step.put));
    else received.push(...(await receive(queue, step.receive)));
  }
  return received;
}

async function receive(queue: Original, most = Infinity): Promise<Buffer[]> {
  const received: Buffer[] = [];
  while (received.length < most) {
    const message = await queue.receive();
    if (message === undefined) break;
    received.push(message);
  }
  return received;
}

/** The digests of all files but those that were put aside: the original does that to whole ones, too. */
function filesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => !name.endsWith('.bad'));
  const digest = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
  return Object.fromEntries(names.sort().map((name) => [name, digest(name)]));
}

/** The files that a queue leaves, by the operations. */
export async function filesAfterOperations(
  open: OpenOriginal,
): Promise<Record<string, Record<string, string>>> {
  const files: Record<string, Record<string, string>> = {};
  for (const [name, steps] of Object.entries(SEQUENCES)) {
    const folder = folderOfTest();
    const queue = await open(folder, 140);
    await run(queue, steps);
    await queue.close();
    files[name] = filesIn(folder);
  }
  return files;
}

function hashes(list: readonly Buffer[]): string[] {
  return list.map((message) => `${message.length}:${message.subarray(0, 20).toString('latin1')}`);
}

/** What both of them have to say about one folder. */
export function describeBothDirections(original: string, openOriginal: OpenOriginal): void {
  const openers = { ours: openOurs, [original]: openOriginal };

  describe.each([
    [original, 'ours'],
    ['ours', original],
  ])('what %s wrote, %s reads', (writer, reader) => {
    it.each(Object.keys(SEQUENCES))('%s', async (name) => {
      const steps = SEQUENCES[name] ?? [];
      const folder = folderOfTest();
      const first = await (openers[writer] as OpenOriginal)(folder, 140);
      await run(first, steps);
      const depth = await first.depth();
      await first.close();
      const left = expectedLeft(steps);
      expect(depth).toBe(left.length);
      const second = await (openers[reader] as OpenOriginal)(folder, 140);
      expect(await second.depth()).toBe(left.length);
      expect(hashes(await receive(second))).toEqual(hashes(left));
      expect(await second.depth()).toBe(0);
      await second.close();
    });
  });

  it('after the same operations the files are the same, byte for byte', async () => {
    expect(await filesAfterOperations(openOurs)).toEqual(await filesAfterOperations(openOriginal));
  });

  it('the original and ours take turns, and nothing is lost, or comes twice, or out of order', async () => {
    const folder = folderOfTest();
    const received: Buffer[] = [];
    let number = 0;
    for (let turn = 0; turn < 12; turn++) {
      const open = turn % 2 === 0 ? openOriginal : openOurs;
      const queue = await open(folder, [140, 1000, 37][turn % 3] ?? 140);
      expect(await queue.depth()).toBe(number - received.length);
      const puts = LENGTHS.slice(turn, turn + 9).map((put) => ({ put }));
      received.push(...(await run(queue, [...puts.slice(0, 5), { receive: 6 }, ...puts.slice(5)], number)));
      number += puts.length;
      await queue.close();
    }
    const last = await openOurs(folder, 140);
    received.push(...(await receive(last)));
    await last.close();
    const lengths = Array.from({ length: 12 }, (_, turn) => LENGTHS.slice(turn, turn + 9)).flat();
    expect(hashes(received)).toEqual(hashes(lengths.map((length, i) => messageOf(i, length))));
  });
}

function expectedLeft(steps: readonly Step[]): Buffer[] {
  let left: Buffer[] = [];
  let number = 0;
  for (const step of steps) {
    if (step === 'empty') left = [];
    else if ('put' in step) left.push(messageOf(number++, step.put));
    else left.splice(0, step.receive);
  }
  return left;
}
