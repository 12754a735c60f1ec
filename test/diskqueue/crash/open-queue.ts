import { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import type { DiskQueueOptions } from '../../../src/diskqueue/disk-queue-options.ts';
import { FILE_SYSTEM, type FileSystem } from '../../../src/log/file-system.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';

export type Setup = Omit<DiskQueueOptions, 'name' | 'dataPath' | 'onCorruption'>;

export const NAME = 'spool';

/** A queue on another file system; `folder` has to exist on the host's, for the lock. */
export function openQueue(
  files: FileSystem,
  folder: string,
  setup: Setup,
  onCorruption: (event: CorruptionEvent) => void = unexpected,
): Promise<DiskQueue> {
  const options = { name: NAME, dataPath: folder, ...setup, onCorruption, [FILE_SYSTEM]: files };
  return DiskQueue.open(options);
}

function unexpected(event: CorruptionEvent): void {
  throw new Error(`unexpected: ${JSON.stringify(event)}`);
}

/** Receives what is there, and settles none of it. */
export async function receiveAll(
  queue: DiskQueue,
): Promise<{ data: Uint8Array; ack: () => void; nack: () => void }[]> {
  const deliveries = [];
  while ((await queue.peek()) !== undefined) {
    const delivery = await queue.receive();
    deliveries.push({
      data: delivery.data,
      ack: () => {
        delivery.ack();
      },
      nack: () => {
        delivery.nack();
      },
    });
  }
  return deliveries;
}
