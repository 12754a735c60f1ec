import { JsonServer } from '../http/json-server.ts';
import { BadRequest } from '../http/query.ts';
import type { FollowerLog } from '../wire.ts';
import type { Follower } from './follower.ts';

/** Shows what a follower has: `GET /log?partition`. Nobody reads from it but the self-check. */
export function followerServer({ logs }: Follower): JsonServer {
  return new JsonServer({
    'GET /log': ({ query, reply }) => {
      const log = logs[query.whole('partition', Number.MAX_SAFE_INTEGER)];
      if (log === undefined) throw new BadRequest('there is no such partition', 404);
      const copy: FollowerLog = { values: log.read(0, log.endOffset), appendedAtMs: log.appendedAtMs };
      reply(200, copy);
    },
  });
}
