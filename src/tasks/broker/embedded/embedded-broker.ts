import { CONSOLE_VIEW, consoleView } from '../../../core/console-view.ts';
import { illegalConstructor } from '../../../core/errors.ts';
import type { BrokerListener, Subscription } from '../broker.ts';
import { BrokerBase, type OperationResults } from '../broker-base.ts';
import { resolveBrokerSettings, type BrokerSettings } from '../broker-settings.ts';
import * as administration from './administration.ts';
import * as groups from './groups.ts';
import * as inspection from './inspection.ts';
import * as life from './life-of-a-task.ts';
import { Members } from './members.ts';
import { TaskStore } from './task-store.ts';

/** The door for the integrity checker, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.embedded-broker.internals');

/** What the integrity checker sees of an embedded broker. */
export interface EmbeddedBrokerInternals {
  /** Undefined once the broker is closed. */
  readonly store: TaskStore | undefined;
}

/** Options of an `EmbeddedBroker`. */
export type EmbeddedBrokerOptions = BrokerSettings;

/**
 * A broker in the memory of the process: nothing to install, nothing to configure. Its tasks are gone with the process.
 *
 * Every operation is done when it returns; its promise is settled already. One timer forwards due tasks, ends leases and
 * removes expired tasks, to the millisecond: nothing polls. The timer keeps the process alive while there is a subscription
 * (a server has one), and not otherwise, because then nothing would run the tasks.
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
  /** Undefined once the broker is closed. */
  #store: TaskStore | undefined;

  private constructor(store: TaskStore) {
    if (!(store instanceof TaskStore)) {
      throw illegalConstructor('EmbeddedBroker', 'await EmbeddedBroker.open({ … })');
    }
    super('EmbeddedBroker', store.clock, operationsOf(store, new Members()));
    this.#store = store;
  }

  /** @throws TypeError or RangeError - an option is wrong. */
  // eslint-disable-next-line @typescript-eslint/require-await -- async, so that a wrong option rejects
  static async open(options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
    return new EmbeddedBroker(new TaskStore(resolveBrokerSettings('EmbeddedBroker.open', options)));
  }

  /** Forgets everything at once; a bulk operation in progress stops and rejects. */
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

/* eslint-disable @typescript-eslint/no-confusing-void-expression -- an operation without a result returns undefined */
function operationsOf(store: TaskStore, members: Members): OperationResults {
  return {
    ping: () => undefined,

    enqueue: (task) => life.enqueue(store, task),
    enqueueMany: (tasks) => life.enqueueMany(store, tasks),
    enqueueTick: (task, tick) => life.enqueueTick(store, task, tick),
    lastTickMs: (queue, entryKey) => store.queues.get(queue)?.ticks.get(entryKey),
    dequeue: (queue, limit, leaseMs) => life.dequeue(store, queue, limit, leaseMs),
    complete: (task) => life.complete(store, task),
    retry: (task, failure, atMs) => life.retry(store, task, failure, atMs),
    archive: (task, failure) => life.archive(store, task, failure),
    release: (task) => life.release(store, task),
    discard: (task) => life.discard(store, task),
    extendLeases: (tasks, leaseMs) => life.extendLeases(store, tasks, leaseMs),
    writeResult: (task, result) => life.writeResult(store, task, result),
    writeProgress: (task, progress) => life.writeProgress(store, task, progress),
    forward: (queues) => life.forward(store, queues),
    recover: (queues, graceMs, leaseMs) => life.recover(store, queues, graceMs, leaseMs),
    deleteExpired: (queues, limit) => life.deleteExpired(store, queues, limit),

    groups: (queue) => groups.groups(store, queue),
    takeGroup: (queue, group, limits, holdMs) => groups.takeGroup(store, queue, group, limits, holdMs),
    replaceSet: (set, task) => groups.replaceSet(store, set, task),
    reclaimSets: (queues) => groups.reclaimSets(store, queues),

    subscribe: (listener) => subscribe(store, listener),
    cancel: (request) => store.notifications.cancel(request),

    announceServer: (read) => members.announceServer(read),
    withdrawServer: (id) => members.withdrawServer(id),
    servers: () => members.servers(),
    announceScheduler: (id, read) => members.announceScheduler(id, read),
    withdrawScheduler: (id) => members.withdrawScheduler(id),
    scheduleEntries: () => members.scheduleEntries(),
    recordEnqueueEvent: (entryId, event) => members.recordEvent(entryId, event),
    enqueueEvents: (entryId, page) => members.events(entryId, page),

    queues: () => inspection.queueNames(store),
    queueStats: (queue) => inspection.queueStats(store, queue),
    history: (queue, days) => inspection.history(store, queue, days),
    task: (queue, id) => inspection.recordOf(store, store.row(queue, id)),
    tasks: (queue, state, page, group) => inspection.tasks(store, queue, state, page, group),

    change: (queue, target, change) => administration.change(store, queue, target, change),
    updatePayload: (queue, id, payload) => administration.updatePayload(store, queue, id, payload),
    repair: (queue) => noDefects(store, queue),
    pause: (queue) => administration.pause(store, queue),
    resume: (queue) => administration.resume(store, queue),
    removeQueue: (queue, { force }) => administration.removeQueue(store, queue, force),
  };
}
/* eslint-enable @typescript-eslint/no-confusing-void-expression */

function subscribe(store: TaskStore, listener: BrokerListener): Subscription {
  store.subscribe(listener);
  let isOver = false;
  return {
    close: () => {
      if (!isOver) store.unsubscribe(listener);
      isOver = true;
      return Promise.resolve();
    },
  };
}

/** No other program can change the broker's memory, so there is nothing to repair. */
function noDefects(store: TaskStore, queue: string): readonly [] {
  store.queue(queue);
  return [];
}
