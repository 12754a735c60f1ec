import { flakyBroker } from 'escapement/testing';
import { EscapementError } from 'escapement';
import type { Broker } from 'escapement/tasks';
import type { BrokerFactory } from './support.ts';

/**
 * A broker behind a network that does not let everything through, and that is asked again until it does: what has failed has
 * done nothing, so all must be as if it had not failed.
 */
export function stubborn(make: BrokerFactory): BrokerFactory {
  let seed = 0;
  return async () => {
    const setup = await make();
    return { ...setup, broker: asksAgain(flakyBroker(setup.broker, { failRate: 0.3, seed: ++seed })) };
  };
}

function asksAgain(broker: Broker): Broker {
  return new Proxy(broker, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: readonly unknown[]) =>
        again(() => Reflect.apply(value, target, args) as Promise<unknown>);
    },
  });
}

async function again(call: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof EscapementError) || error.code !== 'ERR_BROKER_UNAVAILABLE') throw error;
    }
  }
}
