import type { News } from '../controller/news.ts';
import { paint, type Colour } from './paint.ts';

const COLOURS: Record<string, Colour> = {
  written: 'green',
  removed: 'yellow',
  failed: 'red',
  dropped: 'red',
};

/** What became of a file, in a line; undefined if there is nothing to tell. */
export function workLine(news: News, hasColours: boolean): string | undefined {
  const [what, note] = outcomeOf(news);
  const colour = COLOURS[what];
  if (colour === undefined) return undefined;
  return `${paint(what.padEnd(8), colour, hasColours)} ${'key' in news ? news.key : ''}${note}`;
}

function outcomeOf(news: News): readonly [what: string, note: string] {
  if (news.kind === 'done') return [news.result, ''];
  if (news.kind === 'failed') return ['failed', `  ${messageOf(news.error)}`];
  return [news.kind, '  until it changes, or the next resync'];
}

export function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ');
}
