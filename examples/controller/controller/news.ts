import type { Reconciled } from './reconciler.ts';

/** What a controller tells of what it does. */
export type News =
  /** Something has happened to that path. */
  | { readonly kind: 'event'; readonly path: string }
  /** Somebody wants that key to be looked at: an event, or a directory that was listed. */
  | { readonly kind: 'wanted'; readonly key: string }
  /** A worker has taken the key, for the first time or after so many failures. */
  | { readonly kind: 'started'; readonly key: string; readonly retries: number }
  | { readonly kind: 'done'; readonly key: string; readonly result: Reconciled | 'listed' }
  | { readonly kind: 'failed'; readonly key: string; readonly error: unknown }
  /** It has failed once too often: that was all, until it changes or the next resync comes. */
  | { readonly kind: 'dropped'; readonly key: string; readonly error: unknown };

export type Tell = (news: News) => void;
