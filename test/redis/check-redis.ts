import { findRedis, requireRedisProgram, WHAT_TO_INSTALL, type FoundRedis } from './find-redis.ts';

/**
 * Checks the Redis of the tests. `npm test` and `npm run test:all` do so before they build anything, and each run of vitest
 * before any test.
 *
 * @param isRequired - whether all tests are to be run, so that none is left out without Redis.
 * @throws Error - `REDIS_URL` is set and cannot be used; or Redis is required, and there is none, or one that is too old.
 */
export async function checkRedis(isRequired: boolean): Promise<FoundRedis> {
  const found = findRedis();
  if ('url' in found) {
    const { LentDatabase } = await import('./lent-database.ts');
    await new LentDatabase(found.url).requireUsable();
    requireRedisProgram(); // some tests stop and start servers, also where there is one that they may use
  } else if ('lack' in found && isRequired) {
    throw new Error(`All tests need Redis. ${found.lack} ${WHAT_TO_INSTALL}`);
  }
  return found;
}

if (process.argv[1] === import.meta.filename) {
  try {
    await checkRedis(process.argv.includes('--required'));
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
