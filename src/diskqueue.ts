/**
 * A durable queue on a local disk.
 *
 * @module escapement/diskqueue
 */
export { EscapementError } from './core/errors.ts';
export type { EscapementErrorCode } from './core/errors.ts';
export type { BackendQueue, Delivery } from './diskqueue/backend-queue.ts';
export { DummyBackendQueue } from './diskqueue/backend-queue.ts';
export { OverflowQueue } from './diskqueue/overflow-queue.ts';
export type { OverflowQueueOptions } from './diskqueue/overflow-queue.ts';
export { DiskQueue } from './diskqueue/disk-queue.ts';
export type { DiskQueueOptions, Durability } from './diskqueue/disk-queue-options.ts';
export type {
  CorruptionEvent,
  CursorSnapshot,
  DiskQueueSnapshot,
  SegmentSnapshot,
} from './diskqueue/message-log.ts';
