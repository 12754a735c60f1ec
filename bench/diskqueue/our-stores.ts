/** The disk queue, used in its two ways. */
import { DiskQueue, type Durability } from 'escapement/diskqueue';
import type { MessageStore, OpenStore, StoreKind } from './message-store.ts';

export const QUEUE_NAME = 'bench';

class ReceiveStore implements MessageStore {
  protected readonly queue: DiskQueue;

  constructor(queue: DiskQueue) {
    this.queue = queue;
  }

  put(message: Uint8Array): Promise<void> {
    return this.queue.put(message);
  }

  async take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    for (let left = count; left > 0; left--) {
      const delivery = await this.queue.receive();
      handle(delivery.data);
      delivery.ack();
    }
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}

class LoopStore extends ReceiveStore {
  override async take(count: number, handle: (message: Uint8Array) => void): Promise<void> {
    if (count === 0) return;
    let left = count;
    for await (const message of this.queue) {
      handle(message);
      if (--left === 0) break; // the last one stays
    }
  }
}

const openOurs =
  (durability: Durability, Store: typeof ReceiveStore): OpenStore =>
  async (folder) =>
    new Store(await DiskQueue.open({ name: QUEUE_NAME, dataPath: folder, durability }));

export const oursAlways: StoreKind = { name: 'ours', role: 'ours', open: openOurs('always', ReceiveStore) };
export const oursOs: StoreKind = { name: 'ours', role: 'ours', open: openOurs('os', ReceiveStore) };
export const oursReceive: StoreKind = { ...oursOs, name: 'ours: receive' };
export const oursLoop: StoreKind = { ...oursOs, name: 'ours: for await', open: openOurs('os', LoopStore) };
