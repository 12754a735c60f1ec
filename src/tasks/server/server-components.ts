import type { EventEmitter } from 'node:events';
import { EscapementError } from '../../core/errors.ts';
import { SystemTimer } from '../../timer/system-timer.ts';
import type {
  BrokerListener,
  CancelRequest,
  LeaseHolder,
  ServerState,
  WorkerState,
} from '../broker/broker.ts';
import { Aggregator } from './aggregator.ts';
import { Forwarder } from './forwarder.ts';
import type { Handler } from './handler.ts';
import { HealthCheck } from './health-check.ts';
import { Heartbeater } from './heartbeater.ts';
import { Janitor } from './janitor.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { Processor } from './processor.ts';
import { Recoverer } from './recoverer.ts';
import { RunReports } from './run-reports.ts';
import { RunSettler } from './run-settler.ts';
import { RunTable } from './run-table.ts';
import type { ServerEvents } from './server-events.ts';
import { tell } from '../tell.ts';
import { ServerMetrics } from './server-metrics.ts';
import type { ResolvedServerOptions } from './server-options.ts';
import type { ServerParts } from './server-parts.ts';
import { endedWithin } from './settled-within.ts';
import { Subscriber } from './subscriber.ts';
import { Syncer } from './syncer.ts';
import type { TaskRun } from './task-run.ts';
import { TaskWorker } from './task-worker.ts';

/** An armed wake-up is what keeps a process alive. */
const KEEP_ALIVE_MS = 365 * 24 * 3_600_000;

/**
 * The components of a server that was started, as asynq has them: each does one thing, and knows the broker.
 *
 *      Subscriber ──hints──► Processor ──runs──► TaskWorker ──► RunSettler ──what failed──► Syncer
 *          │                     ▲ a place is free    │
 *          ├──cancel─────────────┼────────────────────┤ interrupts
 *          ├──leaseExpired──► Recoverer          LeaseKeeper
 *          └──grouped───────► Aggregator         Heartbeater · Forwarder · Janitor · HealthCheck
 *
 * One timer is behind all of them. With a broker that is self-driven, Forwarder and Janitor do nothing, and nobody polls.
 */
export class ServerComponents {
  readonly runs: RunTable;
  readonly #parts: ServerParts;
  readonly #metrics: ServerMetrics | undefined;
  readonly #syncer: Syncer;
  readonly #worker: TaskWorker;
  readonly #processor: Processor;
  readonly #leases: LeaseKeeper;
  readonly #heartbeater: Heartbeater;
  readonly #forwarder: Forwarder;
  readonly #janitor: Janitor;
  readonly #recoverer: Recoverer;
  readonly #aggregator: Aggregator;
  readonly #healthCheck: HealthCheck;
  readonly #subscriber: Subscriber;

  constructor(
    options: ResolvedServerOptions,
    handler: Handler,
    emitter: EventEmitter<ServerEvents>,
    readState: () => ServerState,
  ) {
    const { broker, logger, metrics, queueNames, graceMs } = options;
    const timer = new SystemTimer({ name: 'server', clock: broker.clock });
    const parts = { broker, options, timer, logger };
    this.#parts = parts;
    this.runs = new RunTable(options.concurrency);
    this.#metrics = metrics === undefined ? undefined : new ServerMetrics(metrics, queueNames, this.runs);
    this.#syncer = new Syncer(timer);
    const reports = new RunReports(emitter, this.#metrics);
    const settler = new RunSettler(
      { ...options, leaseUntilMs: (run) => this.#leases.leaseUntilMs(run) },
      this.#syncer,
      reports,
    );
    const onFree = (run: TaskRun): void => {
      this.#leases.release(run);
      this.#processor.freed(run);
    };
    this.#worker = new TaskWorker({ handler, timer, graceMs, logger, settler, reports, onFree });
    this.#leases = this.#makeLeases();
    this.#healthCheck = new HealthCheck(parts);
    this.#processor = this.#makeProcessor();
    this.#heartbeater = new Heartbeater(parts, readState);
    this.#forwarder = new Forwarder(parts);
    this.#janitor = new Janitor(parts);
    this.#recoverer = new Recoverer(parts);
    this.#aggregator = new Aggregator(parts, (event) => {
      tell(emitter, 'groupFailed', event);
    });
    this.#subscriber = this.#makeSubscriber();
  }

  /** Hints are heard before anything is taken. */
  async start(): Promise<void> {
    this.#keepAlive();
    this.#heartbeater.start();
    this.#healthCheck.start();
    await this.#subscriber.start();
    this.#recoverer.start();
    this.#forwarder.start();
    this.#janitor.start();
    this.#aggregator.start();
    this.#processor.start();
  }

  stop(): void {
    this.#processor.stop();
    this.#heartbeater.refresh();
  }

  /**
   * What runs is waited for first: until then its leases are renewed, and it can be cancelled. A broker that does not
   * answer holds up the rest for a second; or as long as a lease, if outcomes of tasks are still to be written.
   */
  async shutdown(): Promise<void> {
    const { timer, options } = this.#parts;
    this.#heartbeater.refresh();
    await Promise.all([this.#processor.shutdown(), this.#aggregator.shutdown()]);
    await endedWithin(timer, options.leaseMs, this.#shutDownRest(), () => this.#syncer.size > 0);
    timer.close();
    this.#metrics?.remove();
  }

  /** All at once: when this is given up, none of them may go on. */
  async #shutDownRest(): Promise<void> {
    await Promise.all([
      this.#forwarder.shutdown(),
      this.#recoverer.shutdown(),
      this.#syncer.shutdown(),
      this.#subscriber.shutdown(),
      this.#janitor.shutdown(),
      this.#healthCheck.shutdown(),
      this.#leases.close(),
      this.#heartbeater.shutdown(),
    ]);
  }

  workers(): WorkerState[] {
    return this.runs
      .list()
      .filter(({ hasStarted }) => hasStarted)
      .map(workerOf);
  }

  #keepAlive(): void {
    this.#parts.timer.schedule(KEEP_ALIVE_MS, keepAlive, () => {
      this.#keepAlive();
    });
  }

  #makeLeases(): LeaseKeeper {
    const { broker, timer, logger, options } = this.#parts;
    const { leaseMs, graceMs } = options;
    return new LeaseKeeper({
      ...{ broker, timer, logger, leaseMs, graceMs, runs: this.runs },
      holder: this.#makeLeaseHolder(),
      onLost: (run, reason) => {
        this.#worker.interrupt(run, reason);
      },
    });
  }

  #makeLeaseHolder(): LeaseHolder | undefined {
    const { broker, logger, options } = this.#parts;
    const { queueNames, concurrency, leaseMs } = options;
    if (!options.leaseThread) return undefined;
    return broker.leaseHolder?.({
      ...{ queues: queueNames, places: concurrency, leaseMs },
      onError: (error) => {
        logger.warn({ err: error }, 'leases not renewed by their thread');
      },
    });
  }

  #makeProcessor(): Processor {
    return new Processor({
      parts: this.#parts,
      runs: this.runs,
      worker: this.#worker,
      onTaken: (runs) => {
        this.#leases.watch(runs);
      },
      onError: (error) => {
        this.#healthCheck.tell(error);
      },
    });
  }

  #makeSubscriber(): Subscriber {
    const { broker, timer, logger, options } = this.#parts;
    return new Subscriber({
      ...{ broker, timer, logger },
      listener: this.#makeListener(),
      queues: options.queueNames,
      onSubscribed: () => {
        this.#processor.hintAll();
        this.#recoverer.trigger();
        this.#aggregator.trigger();
      },
    });
  }

  #makeListener(): BrokerListener {
    return {
      work: (queue) => {
        this.#processor.hint(queue);
      },
      leaseExpired: (queue) => {
        this.#leaseExpired(queue);
      },
      grouped: (queue, group) => {
        this.#aggregator.grouped(queue, group);
      },
      cancel: (request) => this.#cancel(request),
      closed: () => {
        this.#brokerClosed();
      },
    };
  }

  /**
   * It may be one of ours, or of another server of this process: who was blocked for longer than a lease has not renewed
   * it. So each renews its own when it hears of that, and only then is the rest recovered.
   */
  #leaseExpired(queue: string): void {
    this.#leases.renew();
    if (!this.#parts.options.queueNames.includes(queue)) return;
    queueMicrotask(() => {
      this.#recoverer.trigger();
    });
  }

  /** Nothing comes any more, and nothing else says so: a server outlives its broker only by mistake. */
  #brokerClosed(): void {
    const error = new EscapementError(
      'ERR_BROKER_CLOSED',
      'the broker was closed before the server was shut down',
    );
    this.#parts.logger.error({ err: error }, 'no more tasks: the broker is closed');
    this.#healthCheck.tell(error);
  }

  /** Without a queue every task of that id is meant. */
  #cancel({ taskId, queue, outcome }: CancelRequest): boolean {
    let isHere = false;
    for (const run of this.runs.list()) {
      const { message } = run.leased;
      if (message.id !== taskId || (queue !== undefined && message.queue !== queue)) continue;
      isHere = this.#worker.cancel(run, outcome) || isHere;
    }
    return isHere;
  }
}

const keepAlive = (again: () => void): void => {
  again();
};

function workerOf({ leased, startedAtWallMs, deadlineMs }: TaskRun): WorkerState {
  const { id, type, payload, queue } = leased.message;
  return {
    taskId: id,
    taskType: type,
    payload,
    queue,
    startedAtMs: startedAtWallMs,
    deadlineMs,
  };
}
