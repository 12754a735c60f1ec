import { findRedis } from './find-redis.ts';
import { installRedis } from './install-redis.ts';

/* `npm run test:setup`. */

try {
  const found = findRedis();
  if ('lack' in found) console.log(`installed ${await installRedis()}`);
  else console.log(`nothing to install: ${'url' in found ? 'REDIS_URL is set' : `found ${found.program}`}`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
