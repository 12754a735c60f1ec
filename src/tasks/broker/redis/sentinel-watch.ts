import type { ServerPlan } from './connection-options.ts';
import { makeSentinelClient } from './make-client.ts';
import { RedisSubscriber } from './redis-subscriber.ts';
import type { RedisHost } from './redis-url.ts';

/** Where sentinels say that another server is the primary: `name host port host port`, the old one first. */
const SWITCH_CHANNEL = '+switch-master';

/**
 * Hears from the sentinels when the primary is another one.
 *
 * A primary that was only replaced, and has not died, takes writes for some ten seconds more, until the sentinels make it a
 * replica; then all of them are gone. Each sentinel is heard for itself: the first one that knows may not be the one that is
 * asked next.
 */
export class SentinelWatch {
  readonly #subscribers: readonly RedisSubscriber[];

  constructor(plan: ServerPlan, timeoutMs: number, onSwitch: (primary: RedisHost) => void) {
    const { address } = plan;
    if (address.kind !== 'sentinel') {
      this.#subscribers = [];
      return;
    }
    this.#subscribers = address.sentinels.map(
      (sentinel) => new RedisSubscriber(() => makeSentinelClient(plan, sentinel, timeoutMs), timeoutMs),
    );
    for (const subscriber of this.#subscribers) {
      subscriber.listen(SWITCH_CHANNEL, (message) => {
        const [master, , , host = '', port] = message.toString().split(' ');
        if (master === address.master) onSwitch({ host, port: Number(port) });
      });
    }
  }

  close(): void {
    for (const subscriber of this.#subscribers) subscriber.close();
  }
}
