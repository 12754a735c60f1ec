import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { illegalConstructor } from '../../../core/errors.ts';
import { readOptions } from '../../../core/options.ts';
import { BrokerBase, type Operations } from '../broker-base.ts';
import { BROKER_SETTINGS, type BrokerSettings } from '../broker-settings.ts';
import type { BrokerListener, Subscription } from '../broker.ts';
import { ADMINISTRATION } from './administration.ts';
import { GROUPS } from './groups.ts';
import { INSPECTION } from './inspection.ts';
import { LIFE_OF_A_TASK } from './life-of-a-task.ts';
import { MEMBERS } from './members.ts';
import { TaskStore } from './task-store.ts';

/** Names the method for the integrity checker, which may be in another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.embedded-broker.internals');

/** What the integrity checker reads. */
interface EmbeddedBrokerInternals {
  /** Undefined once the broker is closed. */
  readonly store: TaskStore | undefined;
}

/** Options of an `EmbeddedBroker`. */
export type EmbeddedBrokerOptions = BrokerSettings;

const OPERATIONS: Operations<TaskStore> = {
  ping: () => undefined,
  ...LIFE_OF_A_TASK,
  ...GROUPS,
  ...MEMBERS,
  ...INSPECTION,
  ...ADMINISTRATION,
  subscribe: (store, listener) => store.subscribe(listener),
  cancel: (store, request) => store.notifications.cancel(request),
};

/**
 * A broker in the memory of the process: nothing to install, nothing to configure. Its tasks end with the process.
 *
 * Every operation is done when it returns; its promise is settled already. One timer forwards due tasks, ends leases and
 * removes expired tasks, to the millisecond: nothing polls. The timer keeps the process alive while there is a subscription
 * (a server has one), and not otherwise, because then no server would run the tasks.
 *
 * @example
 * ```ts
 * const broker = await EmbeddedBroker.open();
 * const client = new Client({ broker });
 * const server = new Server({ broker });
 * ```
 */
export class EmbeddedBroker extends BrokerBase {
  override readonly maintenance = [];
  #store: TaskStore | undefined;

  private constructor(store: TaskStore) {
    if (!(store instanceof TaskStore)) {
      throw illegalConstructor('EmbeddedBroker', 'await EmbeddedBroker.open({ … })');
    }
    super('EmbeddedBroker', store.clock, OPERATIONS, store);
    this.#store = store;
  }

  /** @throws TypeError or RangeError - an option is not valid. */
  // eslint-disable-next-line @typescript-eslint/require-await -- async, so that an invalid option rejects
  static async open(options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
    return new EmbeddedBroker(new TaskStore(readOptions('EmbeddedBroker.open', options, BROKER_SETTINGS)));
  }

  /** Removes all tasks immediately; a bulk operation in progress stops and rejects. */
  override close(): Promise<void> {
    this.closeOperations();
    this.#store?.close();
    this.#store = undefined;
    return Promise.resolve();
  }

  /** The listener is notified of events in all queues. */
  override subscribe(listener: BrokerListener, queues: readonly string[] = []): Promise<Subscription> {
    return super.subscribe(listener, queues);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => {
      const queues = this.#store && [...this.#store.queues.values()];
      return {
        ...{ clock: undefined, maintenance: undefined, state: queues ? 'open' : 'closed' },
        queues: queues?.length,
        tasks: queues?.reduce((tasks, { rows }) => tasks + rows.size, 0),
      };
    });
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): EmbeddedBrokerInternals {
    return { store: this.#store };
  }
}
