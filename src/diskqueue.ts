/** A durable queue on a local disk. */
export type { BackendQueue, Delivery } from './diskqueue/backend-queue.ts';
export { DiskQueue } from './diskqueue/disk-queue.ts';
export type { DiskQueueOptions, Durability } from './diskqueue/disk-queue-options.ts';
export type { CorruptionEvent } from './diskqueue/message-log.ts';
