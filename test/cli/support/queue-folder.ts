import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import { record } from '../../diskqueue/nsq/queue-folder.ts';
import { folderOfTest } from '../../folder.ts';

/** A test with a folder of its own. */
export const it = test.extend('folder', () => folderOfTest());

/** Puts messages into a queue of small files, acknowledges the first ones, and closes it. */
export async function makeQueue(
  folder: string,
  name: string,
  messages: readonly (string | Uint8Array)[],
  { acked = 0, maxBytesPerFile = 512 }: { acked?: number; maxBytesPerFile?: number } = {},
): Promise<void> {
  const queue = await DiskQueue.open({ name, dataPath: folder, maxBytesPerFile });
  await Promise.all(messages.map((message) => queue.put(Buffer.from(message))));
  for (let i = 0; i < acked; i++) (await queue.receive()).ack();
  await queue.close();
}

/** Three files of two, two and one message, as go-diskqueue writes them; the first message is consumed. */
export function makeNsqQueue(folder: string, name: string): void {
  const write = (part: string, ...contents: Buffer[]): void => {
    writeFileSync(join(folder, `${name}.diskqueue.${part}.dat`), Buffer.concat(contents));
  };
  write('000000', record('one'), record('two'));
  write('000001', record('three'), record('four'));
  write('000002', record('five'));
  write('meta', Buffer.from('4\n0,7\n2,8\n'));
}

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `message ${i + 1}`);
}

/** What the messages of a queue are, handed out by the queue itself. */
export async function messagesOf(folder: string, name: string): Promise<string[]> {
  const damages: string[] = [];
  const onCorruption = ({ reason }: { reason: string }): void => void damages.push(reason);
  const queue = await DiskQueue.open({ name, dataPath: folder, onCorruption });
  const messages: string[] = [];
  while (messages.length < queue.depth) messages.push(Buffer.from((await queue.receive()).data).toString());
  await queue.close();
  if (damages.length > 0) throw new Error(damages.join());
  return messages;
}

/** Flips a bit. */
export function damage(folder: string, file: string, at: number): void {
  const bytes = readFileSync(join(folder, file));
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(join(folder, file), bytes);
}

/** Names, contents and times of a folder, as one string: two of them are the same if nothing was changed. */
export function hashOf(folder: string): string {
  const hash = createHash('sha256').update(String(statSync(folder).mtimeMs));
  for (const name of readdirSync(folder).sort()) {
    const stats = statSync(join(folder, name));
    hash.update(`${name}\0${stats.mtimeMs}\0`);
    if (stats.isFile()) hash.update(readFileSync(join(folder, name))); // a lock is a folder
  }
  return hash.digest('hex');
}
