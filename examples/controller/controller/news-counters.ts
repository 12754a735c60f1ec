import { Counter, type Registry } from 'prom-client';
import type { News, Tell } from './news.ts';

/** What a controller counts beside what its queue measures: events, and results by name. */
export function countNews(registry: Registry): Tell {
  const registers = [registry];
  const events = new Counter({
    name: 'controller_events_total',
    help: 'Events of the file system.',
    registers,
  });
  const results = new Counter({
    name: 'controller_reconcile_total',
    help: 'What became of the keys that were worked on. One that is dropped has failed as well.',
    labelNames: ['result'],
    registers,
  });
  return (news: News) => {
    if (news.kind === 'event') events.inc();
    if (news.kind === 'done') results.inc({ result: news.result });
    if (news.kind === 'failed' || news.kind === 'dropped') results.inc({ result: news.kind });
  };
}
