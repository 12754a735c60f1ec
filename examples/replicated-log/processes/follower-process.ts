/** A follower's process. */
import { followerServer } from '../follower/follower-server.ts';
import { Follower, type FollowerOptions } from '../follower/follower.ts';
import { serve } from './child-protocol.ts';

await serve((options) => {
  const follower = new Follower(options as FollowerOptions);
  const server = followerServer(follower);
  return {
    listen: () => server.listen(),
    close: async () => {
      await Promise.all([follower.stop(), server.close()]);
    },
  };
});
