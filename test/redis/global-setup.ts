import type { TestProject } from 'vitest/node';
import { findRedis } from './find-redis.ts';
import { requireRecentRedis } from './redis-version.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** What `REDIS_URL` says, if it is set. */
    redis: { readonly url: string | undefined };
  }
}

/**
 * Sees to it that there is Redis, once and before any test. It starts none: a file that needs a server has it from
 * `freshDatabase`, and the others do not wait for it.
 *
 * @throws Error - there is none, and none could be installed; its message says what to do.
 */
export async function setup(project: TestProject): Promise<void> {
  const found = await findRedis();
  if ('url' in found) await requireUsable(found.url);
  else requireRecentRedis(found.program);
  project.provide('redis', { url: 'url' in found ? found.url : undefined });
}

async function requireUsable(url: string): Promise<void> {
  const { LentDatabase } = await import('./lent-database.ts');
  await new LentDatabase(url).requireEmpty();
}
