import type { TestProject } from 'vitest/node';
import { checkRedis } from './check-redis.ts';
import { WHAT_TO_INSTALL, type FoundRedis } from './find-redis.ts';

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

let found: FoundRedis | undefined;

/** Checks Redis. Starts no server: a file that needs one has it from `freshDatabase`, and the others do not wait for it. */
export async function setup(project: TestProject): Promise<void> {
  found = await checkRedis(project.config.env['ESCAPEMENT_TESTS'] === 'all');
  const url = 'url' in found ? found.url : undefined;
  project.provide('redis', { isThere: !('lack' in found), url });
}

/** The last line of a run without Redis. */
export function teardown(): void {
  if (found === undefined || !('lack' in found)) return;
  console.log(`\nLeft out: the tests that need Redis. ${found.lack} ${WHAT_TO_INSTALL}`);
}
