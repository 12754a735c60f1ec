import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import type { Broker, BrokerListener, Subscription } from '../broker/broker.ts';
import { BackOff } from './back-off.ts';
import type { Logger } from './logger.ts';

/** What a subscriber needs. */
export interface SubscriberOptions {
  readonly broker: Broker;
  readonly timer: SystemTimer;
  readonly logger: Logger;
  readonly listener: BrokerListener;
  readonly queues: readonly string[];
  /** From now on everything is heard; what came before may have been missed. */
  readonly onSubscribed: () => void;
}

/** Listens to the broker. If that fails, it is tried again with back-off, until it works or the server shuts down. */
export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #backOff = new BackOff();
  #subscription: Subscription | undefined;
  #id: TimerId | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: SubscriberOptions) {
    this.#options = options;
  }

  /** Resolves after the first time it was tried. */
  start(): Promise<void> {
    this.#running = this.#subscribe();
    return this.#running;
  }

  async shutdown(): Promise<void> {
    this.#isStopped = true;
    if (this.#id !== undefined) this.#options.timer.cancel(this.#id);
    await this.#running;
    try {
      await this.#subscription?.close();
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'subscription not closed');
    }
  }

  async #subscribe(): Promise<void> {
    const { broker, timer, logger, listener, queues, onSubscribed } = this.#options;
    try {
      this.#subscription = await broker.subscribe(listener, queues);
      onSubscribed();
    } catch (error) {
      logger.warn({ err: error }, 'not subscribed to the broker');
      if (!this.#isStopped) this.#id = timer.schedule(this.#backOff.next(), restart, this);
    }
  }
}

const restart = (subscriber: Subscriber): void => {
  void subscriber.start();
};
