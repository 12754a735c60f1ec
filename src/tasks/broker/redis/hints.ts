import type { BrokerListener, CancelRequest, Subscription } from '../broker.ts';
import { reportUncaught } from '../../../core/report-uncaught.ts';
import { Cancellation } from './cancellation.ts';
import type { RedisAccess } from './redis-access.ts';

type Channel = readonly [name: string, tell: (message: Buffer) => void];

/** Between the ids of one message: scripts that settle many tasks tell of them at once. */
const SEPARATOR = '\0';

/**
 * What happens in the queues that somebody serves or watches, by pub/sub: asynq knows nothing of it, and polls.
 *
 * A queue's channel of work tells of two things: a message without a text, that its pending list is not empty any more; one
 * with a text, that the group of that name has grown. Who has taken less than he asked for knows that the list was empty then,
 * so what is enqueued behind others needs no message of its own.
 */
export class Hints {
  readonly #access: RedisAccess;
  readonly #cancellation: Cancellation;
  readonly #listeners = new Set<BrokerListener>();

  constructor(access: RedisAccess) {
    this.#access = access;
    this.#cancellation = new Cancellation(access);
  }

  /** A listener hears of what it has methods for. */
  async subscribe(listener: BrokerListener, queues: readonly string[]): Promise<Subscription> {
    const channels = [...new Set(queues)].flatMap((queue) => this.#channelsOf(listener, queue));
    if (listener.cancel !== undefined) channels.push(...this.#cancellation.channelsOf(listener));
    const subscribed: Channel[] = [];
    const close = (): void => {
      this.#listeners.delete(listener);
      for (const [name, tell] of subscribed.splice(0)) this.#access.unsubscribe(name, tell);
    };
    try {
      this.#listeners.add(listener);
      for (const channel of channels) {
        subscribed.push(channel);
        await this.#access.subscribe(...channel);
      }
    } catch (error) {
      close();
      throw error;
    }
    return {
      close: () => {
        close();
        return Promise.resolve();
      },
    };
  }

  /** @returns whether somebody who runs the task has answered in time. */
  cancel(request: CancelRequest, waitMs: number): Promise<boolean> {
    return this.#cancellation.ask(request, waitMs);
  }

  /** Nobody is told anything any more, but that. */
  close(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    queueMicrotask(() => {
      for (const listener of listeners) {
        try {
          listener.closed?.();
        } catch (error) {
          reportUncaught(error);
        }
      }
    });
  }

  #channelsOf(listener: BrokerListener, queue: string): Channel[] {
    const { workChannel, settledChannel, progressChannel } = this.#access.keysOf(queue);
    const channels: Channel[] = [];
    if (listener.work !== undefined || listener.grouped !== undefined) {
      channels.push([
        workChannel,
        (message) => {
          if (message.length === 0) listener.work?.(queue);
          else listener.grouped?.(queue, message.toString());
        },
      ]);
    }
    if (listener.settled !== undefined) {
      channels.push([
        settledChannel,
        (message) => {
          for (const id of message.toString().split(SEPARATOR)) listener.settled?.(queue, id);
        },
      ]);
    }
    if (listener.progressed !== undefined) {
      channels.push([progressChannel, (message) => listener.progressed?.(queue, message.toString())]);
    }
    return channels;
  }
}
