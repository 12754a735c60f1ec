import type { TestProject } from 'vitest/node';
import { findRedis, WHAT_TO_INSTALL } from './find-redis.ts';
import { requireRecentRedis } from './redis-version.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redis: {
      /** Whether there is a server, or a program to start one with. */
      readonly isThere: boolean;
      /** `REDIS_URL`, if it is set. */
      readonly url: string | undefined;
    };
  }
}

const found = findRedis();

/**
 * Checks Redis once, before any test. Starts no server: a file that needs one has it from `freshDatabase`, and the others
 * do not wait for it.
 *
 * @throws Error - Redis is too old or its database is not empty; or all tests are to be run, and there is no Redis.
 */
export async function setup(project: TestProject): Promise<void> {
  if (found === undefined && project.config.env['ESCAPEMENT_TESTS'] === 'all') {
    throw new Error(`All tests are to be run, and there is no Redis. ${WHAT_TO_INSTALL}`);
  }
  if (found !== undefined && 'url' in found) await requireUsable(found.url);
  else if (found !== undefined) requireRecentRedis(found.program);
  const url = found !== undefined && 'url' in found ? found.url : undefined;
  project.provide('redis', { isThere: found !== undefined, url });
}

/** The last line of a run without Redis. */
export function teardown(): void {
  if (found === undefined) console.log(`\nLeft out: the tests that need Redis. ${WHAT_TO_INSTALL}`);
}

async function requireUsable(url: string): Promise<void> {
  const { LentDatabase } = await import('./lent-database.ts');
  await new LentDatabase(url).requireEmpty();
}
