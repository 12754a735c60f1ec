/** The leader's process. */
import { LeaderServer } from '../broker/leader-server.ts';
import { Leader, type LeaderOptions } from '../broker/leader.ts';
import { serve } from './child-protocol.ts';

await serve((options) => new LeaderServer(new Leader(options as LeaderOptions)));
