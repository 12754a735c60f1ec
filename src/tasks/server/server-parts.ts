import type { SystemTimer } from '../../timer/system-timer.ts';
import type { Broker } from '../broker/broker.ts';
import type { Logger } from './logger.ts';
import type { ResolvedServerOptions } from './server-options.ts';

/** What the components of a server have in common. */
export interface ServerParts {
  readonly broker: Broker;
  readonly options: ResolvedServerOptions;
  /** One for all, on the broker's clock: one wake-up of the host, whatever the server waits for. */
  readonly timer: SystemTimer;
  readonly logger: Logger;
}
