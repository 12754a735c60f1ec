import type { News } from '../controller/news.ts';

/** What a controller has done so far, in numbers. */
export class Progress {
  events = 0;
  /** Keys that were handed out. */
  taken = 0;
  written = 0;
  removed = 0;
  retries = 0;
  dropped = 0;

  note(news: News): void {
    if (news.kind === 'event') this.events++;
    if (news.kind === 'started') this.#start(news.retries);
    if (news.kind === 'dropped') this.dropped++;
    if (news.kind === 'done' && news.result === 'written') this.written++;
    if (news.kind === 'done' && news.result === 'removed') this.removed++;
  }

  #start(retries: number): void {
    this.taken++;
    if (retries > 0) this.retries++;
  }
}
