import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { News } from './controller/news.ts';
import { Service } from './controller/service.ts';
import type { WatchOptions } from './options.ts';
import type { ControllerScreen } from './terminal/controller-screen.ts';
import { messageOf } from './terminal/work-line.ts';

/** 25 ms, 50 ms and so on: 6 s for eight of them. */
const RETRY_DELAY_MS = 25;

/** Keeps the output right until the signal fires. @returns how many files are not as they should be. */
export async function watchDirectory(
  options: WatchOptions,
  screen: ControllerScreen,
  signal: AbortSignal,
): Promise<number> {
  const failing = new Map<string, unknown>();
  const tell = (news: News): void => {
    if (news.kind === 'done') failing.delete(news.key);
    if (news.kind === 'failed') failing.set(news.key, news.error);
    screen.note(news);
  };
  const service = new Service({ ...options, retryDelayMs: RETRY_DELAY_MS, tell });
  try {
    const url = await service.start(options.port);
    screen.say(
      `Watching ${options.sourceDirectory}; the output is ${options.outputDirectory}.\nMetrics: ${url}`,
    );
    screen.open(service.controller);
    if (!signal.aborted) await once(signal, 'abort');
    screen.event('stopping: what is queued is done, what waits is dropped');
    const left = await service.stop();
    screen.close();
    for (const key of left) screen.say(`Its retry was still to come: ${key}`);
    return tellUnwell(failing, options.sourceDirectory, screen);
  } finally {
    await service.close();
  }
}

function tellUnwell(failing: ReadonlyMap<string, unknown>, source: string, screen: ControllerScreen): number {
  // A directory that was moved away has taken its files with it, and nobody told.
  const unwell = [...failing].filter(([key]) => existsSync(join(source, key)));
  for (const [key, error] of unwell) screen.say(`Not rendered: ${key}: ${messageOf(error)}`);
  if (unwell.length === 0) screen.say('Stopped: every file is as it should be.');
  return unwell.length;
}
