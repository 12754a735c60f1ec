import { WorkQueue, type Lease } from 'escapement';
import { checkQueue } from 'escapement/testing';
import { settled, watch } from './outcome.ts';

/** Returns a queue in which each character is an item. */
export function queueOf(items: string): WorkQueue<string> {
  const queue = new WorkQueue<string>();
  for (const item of items) queue.add(item);
  return queue;
}

/** Returns a queue whose only item is held. */
export async function queueHolding(item: string): Promise<WorkQueue<string>> {
  const queue = queueOf(item);
  await takeNow(queue);
  return queue;
}

/** Takes an item that must be there at once, and checks the queue. */
export async function takeNow<T>(queue: WorkQueue<T>): Promise<T> {
  const outcome = watch(queue.get());
  await settled();
  checkQueue(queue);
  if (outcome.state !== 'resolved') throw new Error('expected an item, but get waits');
  const taken = await outcome.promise;
  if (taken.shutdown) throw new Error('expected an item, but the queue has ended');
  return taken.item;
}

/** Takes everything that is ready, in order; nothing of it is done. */
export async function takeAll<T>(queue: WorkQueue<T>): Promise<T[]> {
  const items: T[] = [];
  while (queue.length > 0) items.push(await takeNow(queue));
  return items;
}

/** Takes everything that is ready, and says that it is done. */
export async function processAll<T>(queue: WorkQueue<T>): Promise<T[]> {
  const items = await takeAll(queue);
  for (const item of items) queue.done(item);
  checkQueue(queue);
  return items;
}

/** The next lease, which must be there at once. */
export async function leaseNow<T>(leases: AsyncIterator<Lease<T>, undefined>): Promise<Lease<T>> {
  const { value } = await leases.next();
  if (value === undefined) throw new Error('expected a lease, but the loop has ended');
  return value;
}
