/**
 * A follower, in a process of its own: copies the leader's log by long polls. It starts with an empty log, and sends its parent
 * what it has for each message that it receives.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Records } from './leader.ts';

const [url, name, ...topics] = process.argv.slice(2);
const log: Record<string, string[]> = Object.fromEntries(topics.map((topic) => [topic, []]));

process.on('message', () => process.send?.(log));
process.on('disconnect', () => process.exit()); // the parent has ended
process.on('SIGINT', () => undefined); // Ctrl-C in a terminal reaches the whole group; the parent ends this process

for (;;) {
  const offsets = topics.map((topic) => `${topic}=${log[topic]?.length ?? 0}`).join('&');
  try {
    const response = await fetch(`${url}/records?${offsets}&waitMs=200&follower=${name}`);
    if (!response.ok) throw new Error(await response.text());
    for (const [topic, records] of Object.entries((await response.json()) as Records))
      log[topic]?.push(...records);
  } catch {
    await sleep(100); // the leader is away: try again
  }
}
