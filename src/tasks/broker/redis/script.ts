import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';

/** What ioredis sends as it is. */
export type ScriptArgument = string | number | Buffer;

/** What Redis answers, with bytes for every string. */
export type ScriptReply = Buffer | number | null | ScriptReply[];

/**
 * A Lua script: one atomic step of the broker. Each has a file of its own, which says what its KEYS and ARGV are.
 *
 * All of them look first and write last: Redis does not take back what a script that fails has written. Hence `pcall` for
 * PUBLISH, which comes after that: a user may not have the right to, and who listens looks now and then anyway.
 */
export class Script {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source.trim();
    this.#sha = createHash('sha1').update(this.#source).digest('hex');
  }

  /** By its digest; Redis is given the text only if it does not know it: it was started anew, or is another one. */
  async run(
    client: Redis | Cluster,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<ScriptReply> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return (await client.callBuffer('evalsha', [this.#sha, ...rest])) as ScriptReply;
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return (await client.callBuffer('eval', [this.#source, ...rest])) as ScriptReply;
    }
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
