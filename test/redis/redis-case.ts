import { inject } from 'vitest';
import { LentDatabase } from './lent-database.ts';
import { RedisProcess } from './redis-process.ts';

/** A database with nothing in it. */
export interface FreshDatabase {
  readonly url: string;
  /** Empties it, for another test. */
  readonly dispose: () => Promise<void>;
}

/** More than any test has at a time. */
const DATABASES = 16;

/** Whether there is one database for all tests, so that tests cannot run at the same time. */
export const hasOneDatabase = inject('redis').url !== undefined;

let own: Promise<RedisProcess> | undefined;
let lent: LentDatabase | undefined;
const free = Array.from({ length: DATABASES }, (_, number) => number);

/**
 * A database for a test of its own.
 *
 * It is one of a server of this process: the first call starts it, and it ends with the process, so that no channel leads to a file
 * that runs at the same time. If `REDIS_URL` is set it is what that says, there is one at a time, and files run
 * one after another.
 */
export async function freshDatabase(): Promise<FreshDatabase> {
  const { url } = inject('redis');
  if (url !== undefined) return (lent ??= new LentDatabase(url)).take();
  own ??= RedisProcess.start({ args: ['--databases', String(DATABASES)] });
  const server = await own;
  const number = free.shift();
  if (number === undefined) throw new Error('all databases are taken: a test has not disposed of its own');
  let isTaken = true;
  return {
    url: `${server.url}/${number}`,
    dispose: async () => {
      if (!isTaken)
        throw new Error('a test has disposed of its database twice: it may be that of another test');
      isTaken = false;
      await server.ask(`SELECT ${number}`, 'FLUSHDB');
      free.push(number);
    },
  };
}
