import type { EventEmitter } from 'node:events';
import { BackOff } from '../../core/back-off.ts';
import { EscapementError } from '../../core/errors.ts';
import { original } from '../../core/host.ts';
import { DAY_MS } from '../../core/units.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import type {
  BrokerListener,
  CancelRequest,
  ServerHead,
  ServerState,
  Subscription,
  WorkerState,
} from '../broker/broker.ts';
import { endedWithin } from '../timed-work.ts';
import { Groups } from './groups.ts';
import type { Handler } from '../handler.ts';
import { LeaseKeeper } from './leases.ts';
import { Maintenance } from './maintenance.ts';
import { Latch, Processor } from './processor.ts';
import { Reports, type ServerEvents } from './reports.ts';
import { RunTable, type TaskRun } from './run.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import { Settler } from './settling.ts';

/** Only an armed timer keeps the process alive; this one is armed again and again. */
const KEEP_ALIVE_MS = 365 * DAY_MS;

/**
 * Owns the components of a server that was started, and passes on the notifications of the broker.
 *
 *      broker ──work──────────► Processor ──starts──► TaskRun ──settles──► Settler ──► broker
 *             ──leaseExpired──► LeaseKeeper, Maintenance   ▲                  └──► Reports, RunTable
 *             ──grouped───────► Groups                     │ interrupts
 *             ──cancel────────► the runs of the task ──────┤
 *                               LeaseKeeper ───────────────┘
 *
 * One timer, on the broker's clock, is behind all of them: the host has one wake-up, whatever the server waits for.
 */
export class ServerComponents implements BrokerListener {
  readonly runs: RunTable;
  readonly #options: ResolvedServerOptions;
  readonly #timer: SystemTimer;
  readonly #reports: Reports;
  readonly #leases: LeaseKeeper;
  readonly #settler: Settler;
  readonly #processor: Processor;
  readonly #groups: Groups;
  readonly #maintenance: Maintenance;
  readonly #backOff = new BackOff();
  #subscribing: Promise<void> | undefined;
  #subscription: Subscription | undefined;
  #isShutDown = false;

  constructor(
    options: ResolvedServerOptions,
    handler: Handler,
    emitter: EventEmitter<ServerEvents>,
    readHead: () => ServerHead,
  ) {
    const timer = new SystemTimer({ name: 'server', clock: options.broker.clock });
    const latch = new Latch(timer);
    const runs = new RunTable(options.concurrency, latch);
    const reports = new Reports(emitter, options, runs);
    const leases = new LeaseKeeper(options, timer, runs);
    const settler = new Settler(options, timer, runs, leases, reports);
    const settle = settler.settle.bind(settler);
    const readState = (): ServerState => ({ ...readHead(), workers: workersOf(runs) });
    this.#options = options;
    this.#timer = timer;
    this.runs = runs;
    this.#reports = reports;
    this.#leases = leases;
    this.#settler = settler;
    this.#processor = new Processor({ options, timer, handler, settle }, latch, runs, leases, reports);
    this.#groups = new Groups(options, timer, reports);
    this.#maintenance = new Maintenance(options, timer, leases, this.#groups, reports, readState);
  }

  /** Subscribes before it takes tasks. */
  async start(): Promise<void> {
    this.#keepAlive();
    this.#maintenance.start();
    this.#groups.start();
    this.#subscribing = this.#subscribe();
    await this.#subscribing;
    this.#catchUp();
    this.#processor.start();
  }

  stop(): void {
    this.#processor.stop();
    this.#maintenance.trigger('announce');
  }

  /**
   * Waits for the runs first: until they have ended, leases are renewed and cancellations are received. A broker that does not
   * answer delays the rest by a second; or by the time of a lease, if outcomes of tasks are still to be written.
   */
  async shutdown(): Promise<void> {
    this.#maintenance.trigger('announce');
    await Promise.all([this.#processor.shutdown(), this.#groups.shutdown()]);
    const rest = [
      this.#maintenance.shutdown(),
      this.#settler.shutdown(),
      this.#unsubscribe(),
      this.#leases.close(),
    ];
    const isWriting = (): boolean => this.#settler.unwritten > 0;
    await endedWithin(this.#timer, this.#options.leaseMs, Promise.all(rest), isWriting);
    this.#timer.close();
    this.#reports.close();
  }

  // Notifications of the broker:

  work(queue: string): void {
    this.#processor.notify(queue);
  }

  /**
   * It may be a lease of this server, or of another one in this process: one that was blocked for longer than a lease has not renewed
   * it. So each server renews its own when it is notified, and only then is the rest recovered.
   */
  leaseExpired(queue: string): void {
    this.#leases.renew();
    if (!this.#options.queueNames.includes(queue)) return;
    const { queueMicrotask } = original;
    queueMicrotask(() => {
      this.#maintenance.trigger('recover');
    });
  }

  grouped(queue: string, group: string): void {
    this.#groups.notify(queue, group);
  }

  /** Without a queue, every task of that id is cancelled. */
  cancel({ taskId, queue, outcome }: CancelRequest): boolean {
    let isHere = false;
    for (const run of this.runs.list()) {
      const { message } = run.leased;
      if (message.id !== taskId || (queue !== undefined && message.queue !== queue)) continue;
      isHere = run.cancel(outcome) || isHere;
    }
    return isHere;
  }

  /** A mistake of the program, and nothing else would report it: no task arrives any more. */
  closed(): void {
    const message = 'the broker was closed before the server was shut down';
    const error = new EscapementError('ERR_BROKER_CLOSED', message, { op: 'Server.start' });
    this.#options.logger.error({ err: error }, 'no more tasks: the broker is closed');
    this.#reports.health(error);
  }

  readonly #keepAlive = (): void => {
    this.#timer.schedule(KEEP_ALIVE_MS, this.#keepAlive, undefined);
  };

  async #subscribe(): Promise<void> {
    const { broker, queueNames, logger } = this.#options;
    try {
      this.#subscription = await broker.subscribe(this, queueNames);
    } catch (error) {
      logger.warn({ err: error }, 'not subscribed to the broker');
      if (!this.#isShutDown) this.#timer.schedule(this.#backOff.next(), this.#subscribeAgain, undefined);
    }
  }

  readonly #subscribeAgain = (): void => {
    if (this.#isShutDown) return;
    this.#subscribing = this.#subscribe().then(() => {
      if (this.#subscription !== undefined) this.#catchUp();
    });
  };

  /** Notifications may have been missed before the subscription. */
  #catchUp(): void {
    this.#processor.notifyAll();
    this.#maintenance.trigger('recover');
    this.#maintenance.trigger('groups');
  }

  async #unsubscribe(): Promise<void> {
    this.#isShutDown = true;
    await this.#subscribing;
    try {
      await this.#subscription?.close();
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'subscription not closed');
    }
  }
}

function workersOf(runs: RunTable): WorkerState[] {
  return runs
    .list()
    .filter(({ hasStarted }) => hasStarted)
    .map(workerOf);
}

function workerOf({ leased, startedAtWallMs, deadlineMs }: TaskRun): WorkerState {
  const { id, type, payload, queue } = leased.message;
  return { taskId: id, taskType: type, payload, queue, startedAtMs: startedAtWallMs, deadlineMs };
}
