import { useEffect, useState } from 'preact/hooks';
import { nameOfSegment } from '../dashboard-json.ts';
import { path, withQuery, type Query } from './api.ts';

/** Where the reader is: `#/queues/default?state=retry&page=2`. The parts and the query are decoded. */
export interface PageRoute {
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

function parseHash(hash: string): PageRoute {
  const [, place = '', query] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  return {
    parts: place === '' ? [] : place.split('/').map(decode),
    query: new URLSearchParams(query),
  };
}

/** A link that was typed by hand may hold a `%` that encodes nothing. */
function decode(part: string): string {
  try {
    return nameOfSegment(decodeURIComponent(part));
  } catch {
    return part;
  }
}

/** `href` of a view. */
export function to(parts: readonly string[], query: Query = {}): string {
  return withQuery(`#/${path(...parts)}`, query);
}

export function go(href: string): void {
  location.hash = href;
}

/** Returns a function that goes to a view, unless the reader has gone elsewhere in the meantime. */
export function goLater(href: string): () => void {
  const place = (): string => location.hash.replace(/\?.*/s, '');
  const from = place();
  return () => {
    if (place() === from) go(href);
  };
}

/** The same view with a part of its query changed. */
export function withChange(route: PageRoute, change: Query): string {
  const query: Record<string, readonly string[]> = {};
  for (const name of new Set(route.query.keys())) query[name] = route.query.getAll(name);
  return to(route.parts, { ...query, ...change });
}

/** Replaces the address without an entry in the history of the browser. */
export function replace(href: string): void {
  history.replaceState(null, '', href);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute(): PageRoute {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const read = (): void => setHash(location.hash);
    read(); // it may have changed since the first rendering
    addEventListener('hashchange', read);
    return () => removeEventListener('hashchange', read);
  }, []);
  return parseHash(hash);
}

export const taskHref = (queue: string, id: string): string => to(['queues', queue, 'tasks', id]);
export const queueHref = (queue: string, query: Query = {}): string => to(['queues', queue], query);

/** The number of a page in the query, from 1. */
export function pageOf(route: PageRoute): number {
  const page = Number(route.query.get('page') ?? 1);
  return Number.isInteger(page) && page > 0 ? page : 1;
}
