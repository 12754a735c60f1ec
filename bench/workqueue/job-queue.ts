/**
 * What the cases with a worker ask of each queue. Every kind writes the same loop anew, so that each runs at its own
 * full speed (see `MicroRun.run`).
 */
import type { Contestant, Role } from '../lib/part.ts';
import type { Work } from './jobs.ts';

export interface JobQueue {
  /** Adds a job for each key, one after the other, in one turn. */
  addAll(keys: readonly string[]): void;
  add(key: string): void;
  /** Lets the workers go. */
  close(): void;
}

/** Starts the workers. */
export type OpenQueue = (jobs: Work, concurrency: number) => JobQueue;

export interface QueueKind {
  readonly name: string;
  readonly role: Role;
  readonly note?: string;
  readonly open: OpenQueue | { readonly cannot: string };
}

export interface AbleKind extends QueueKind {
  readonly open: OpenQueue;
}

/** The same case for every kind. */
export function contest<Open>(
  kinds: readonly QueueKind[],
  openWith: (open: OpenQueue) => Open,
): Contestant<Open>[] {
  return kinds.map(({ name, role, note, open }) => ({
    name,
    role,
    ...(note === undefined ? {} : { note }),
    open: typeof open === 'function' ? openWith(open) : open,
  }));
}
