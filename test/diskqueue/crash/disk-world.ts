import { onTestFinished } from 'vitest';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import type { FileSystem } from '../../../src/log/file-system.ts';
import { folderOfTest } from '../../folder.ts';
import { allRemains, nothingRemains, RecordingFileSystem, type Disk } from '../recording-file-system.ts';
import { NAME, openQueue, receiveAll, type Setup } from './open-queue.ts';

export const TEN = Array.from({ length: 10 }, (_, i) => `message ${i}`);

/** A disk that records what is done to it, and the queues that a test opens on it, one after the other. */
export class DiskWorld {
  readonly folder = folderOfTest();
  files = new RecordingFileSystem();
  /** The damage that all of the queues have reported. */
  events: CorruptionEvent[] = [];
  readonly #setup: Setup;

  constructor(setup: Setup = {}) {
    this.#setup = setup;
  }

  /** Opens a queue, which is closed when the test is over. */
  async open(on: FileSystem = this.files, setup: Setup = {}): Promise<DiskQueue> {
    const all = { ...this.#setup, ...setup };
    const queue = await openQueue(on, this.folder, all, (event) => this.events.push(event));
    onTestFinished(() => queue.close().catch(() => undefined));
    return queue;
  }

  /** Returns what a killed process leaves: all that the host was given. */
  afterKill(of = this.files): Disk {
    return of.afterPowerCut(of.log.length, allRemains);
  }

  /** Returns what a power cut leaves: what was synced. */
  afterPowerCut(of = this.files): Disk {
    return of.afterPowerCut(of.log.length, nothingRemains);
  }

  /** The path of a segment, by its number. */
  pathOf(number: number): string {
    return `${this.folder}/${NAME}.${String(number).padStart(10, '0')}.segment`;
  }

  /** The paths of the segments on a disk, in order. */
  segments(disk = this.files.disk): string[] {
    return [...disk.keys()].filter((path) => path.endsWith('.segment')).sort();
  }
}

/** Puts texts one by one. */
export async function put(queue: DiskQueue, ...messages: string[]): Promise<void> {
  for (const message of messages) await queue.put(Buffer.from(message));
}

/** Receives what is there, and settles all of it. @returns the texts. */
export async function receive(queue: DiskQueue, settle: 'ack' | 'nack'): Promise<string[]> {
  const deliveries = await receiveAll(queue);
  for (const delivery of deliveries) delivery[settle]();
  return deliveries.map(({ data }) => Buffer.from(data).toString());
}
