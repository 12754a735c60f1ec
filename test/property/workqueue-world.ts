import { getEventListeners, setMaxListeners } from 'node:events';
import {
  DelayingQueue,
  EscapementError,
  ItemExponentialFailureRateLimiter,
  ManualClock,
  RateLimitingQueue,
  SystemTimer,
  WorkQueue,
  type Lease,
} from 'escapement';
import { checkQueue, checkTimer } from 'escapement/testing';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { claim } from './actions.ts';
import { LOOPS, type Action, type QueueSetup, type Scenario, type SignalKind } from './workqueue-actions.ts';
import { ABORTED, ENDED, LIMITER_OPTIONS, ModelQueue, type Item } from './workqueue-model.ts';

const REASON = new Error('aborted');

/** A promise that the queue gave, and what became of it. */
interface Ticket {
  readonly id: number;
  readonly controller: AbortController | undefined;
  outcome: string | undefined;
  lease: Lease<Item> | undefined;
}

/** A loop over leases, here and in the model. */
class LoopPair {
  readonly controller = new AbortController();
  readonly iterator: AsyncIterableIterator<Lease<Item>, undefined>;
  readonly model = { isOver: false, isAborted: false, isEnding: false };

  constructor(queue: WorkQueue<Item>, hasSignal: boolean) {
    setMaxListeners(0, this.controller.signal);
    this.iterator = queue.leases(hasSignal ? { signal: this.controller.signal } : {});
  }
}

/** A queue on virtual time and a model of it. Every action is done to both, and everything is compared after each step. */
export class WorkQueueWorld {
  readonly #scenario: Scenario;
  readonly #clock = new ManualClock();
  readonly #timer: SystemTimer | undefined;
  readonly #metrics = new RecordingMetrics();
  readonly #queue: WorkQueue<Item>;
  readonly #model: ModelQueue;
  readonly #loops: readonly LoopPair[];
  readonly #tickets: Ticket[] = [];
  #version = 0;

  constructor(scenario: Scenario) {
    const { maxSize, layer, isTimerShared } = scenario.setup;
    this.#scenario = scenario;
    this.#timer = isTimerShared ? new SystemTimer({ clock: this.#clock }) : undefined;
    this.#queue = this.#makeQueue(scenario.setup);
    this.#model = new ModelQueue(maxSize, layer !== 'work');
    this.#loops = Array.from({ length: LOOPS }, (_, i) => new LoopPair(this.#queue, i > 0));
  }

  async run(): Promise<void> {
    for (let i = 0; i < this.#scenario.setup.busyKeys; i++) {
      await this.#step(() => {
        this.#do({ kind: 'add', key: `busy ${i}` });
        this.#get('none');
      });
    }
    for (const actions of this.#scenario.steps) {
      await this.#step(() => {
        for (const action of actions) {
          this.#do(action);
          this.#check();
        }
      });
    }
    await this.#finish();
  }

  #makeQueue({ maxSize, layer }: QueueSetup): WorkQueue<Item> {
    const options = { maxSize, metrics: this.#metrics, clock: this.#clock, keyOf: ({ key }: Item) => key };
    if (layer === 'work') return new WorkQueue(options);
    const delaying = this.#timer === undefined ? options : { ...options, timer: this.#timer };
    if (layer === 'delaying') return new DelayingQueue(delaying);
    const limiter = new ItemExponentialFailureRateLimiter<unknown>(LIMITER_OPTIONS);
    return new RateLimitingQueue<Item>(limiter, delaying);
  }

  /** Whoever works on a queue that is shut down comes to the end of it, and so does every promise. */
  async #finish(): Promise<void> {
    await this.#step(() => this.#shutDown());
    for (let left = 1_000; left > 0 && this.#model.ready.length + this.#model.held.size > 0; left--) {
      await this.#step(() => {
        const [key] = this.#model.held.keys();
        if (key === undefined) this.#get('none');
        else this.#done(key);
      });
    }
    for (const { id, outcome } of this.#tickets) claim(outcome !== undefined, `promise ${id} never ended`);
    claim(this.#clock.pendingWakeups === 0, 'a wake-up is left');
    claim(this.#metrics.readers.size === 0, 'a gauge is left');
  }

  async #step(act: () => void): Promise<void> {
    act();
    // The longest chain of promise jobs from the queue to a ticket.
    for (let i = 0; i < 6; i++) await Promise.resolve();
    for (const { model } of this.#loops) model.isOver ||= model.isEnding;
    for (const { id, outcome } of this.#tickets) {
      const expected = this.#model.outcomes.get(id);
      claim(outcome === expected, `promise ${id} is ${String(outcome)}, and must be ${String(expected)}`);
    }
    this.#check();
  }

  #do(action: Action): void {
    switch (action.kind) {
      case 'add':
        this.#addOr(
          'add',
          (item) => this.#model.add(item),
          action.key,
          (item) => this.#queue.add(item),
        );
        return;
      case 'addAfter':
      case 'addRateLimited':
      case 'cancelDelayed':
      case 'forget':
        this.#doWithDelays(action);
        return;
      case 'addWhenRoom': {
        const item = this.#item(action.key);
        this.#ticket(action.signal, (id, options, isAborted) => {
          this.#model.addWhenRoom(id, item, isAborted);
          return this.#queue.addWhenRoom(item, options).then(() => 'added');
        });
        return;
      }
      case 'get':
        this.#get(action.signal);
        return;
      case 'drain':
        this.#ticket(action.signal, (id, options, isAborted) => {
          this.#model.drain(id, isAborted);
          return this.#queue.shutDownWithDrain(options).then(() => 'drained');
        });
        return;
      case 'next':
        this.#next(this.#loops[action.loop] as LoopPair);
        return;
      case 'return':
        this.#model.return((this.#loops[action.loop] as LoopPair).model);
        void this.#loops[action.loop]?.iterator.return?.();
        return;
      case 'abortLoop':
        this.#abortLoop(action.loop);
        return;
      case 'abort': {
        const ticket = this.#tickets
          .filter(({ controller }) => controller !== undefined)
          .at(-1 - (action.pick % 8));
        if (ticket === undefined) return;
        this.#model.abort(ticket.id);
        ticket.controller?.abort(REASON);
        return;
      }
      case 'done':
        this.#done(action.key);
        return;
      case 'doneHeld': {
        const held = [...this.#model.held.keys()];
        if (held.length > 0) this.#done(held[action.pick % held.length] as string);
        return;
      }
      case 'leaseDone': {
        const leases = this.#tickets.filter(({ lease }) => lease !== undefined);
        const ticket = leases.at(-1 - (action.pick % 5));
        if (ticket === undefined) return;
        this.#model.leaseDone(ticket.id);
        ticket.lease?.done();
        return;
      }
      case 'shutDown':
        this.#shutDown();
        return;
      case 'pass':
        this.#model.pass(action.ms);
        this.#clock.advance(action.ms);
    }
  }

  #doWithDelays(action: Extract<Action, { key: string }>): void {
    const queue = this.#queue;
    if (!(queue instanceof DelayingQueue)) return;
    const { key } = action;
    if (action.kind === 'addAfter') {
      const { delayMs } = action;
      this.#addOr(
        `addAfter ${delayMs}`,
        (item) => this.#model.addAfter(item, delayMs),
        key,
        (item) => queue.addAfter(item, delayMs),
      );
    } else if (action.kind === 'cancelDelayed') {
      const [was, must] = [queue.cancelDelayed({ key, version: -1 }), this.#model.cancelDelayed(key)];
      claim(was === must, `cancelDelayed said ${String(was)}`);
    } else if (queue instanceof RateLimitingQueue) {
      if (action.kind === 'addRateLimited') {
        this.#addOr(
          'addRateLimited',
          (item) => this.#model.addRateLimited(item),
          key,
          (item) => (queue as RateLimitingQueue<Item>).addRateLimited(item),
        );
      } else {
        this.#model.failures.delete(key);
        (queue as RateLimitingQueue<Item>).forget({ key, version: -1 });
      }
    }
  }

  #item(key: string): Item {
    return { key, version: this.#version++ };
  }

  /** Adds, and is refused exactly when there is no room. */
  #addOr(what: string, inModel: (item: Item) => boolean, key: string, act: (item: Item) => void): void {
    const item = this.#item(key);
    const isWelcome = inModel(item);
    try {
      act(item);
    } catch (error) {
      const isFull = error instanceof EscapementError && error.code === 'ERR_QUEUE_FULL';
      claim(isFull && !isWelcome, `${what} failed: ${String(error)}`);
      return;
    }
    claim(isWelcome, `${what} was not refused`);
  }

  #done(key: string): void {
    const isHeld = this.#model.done(key);
    try {
      this.#queue.done({ key, version: -1 });
    } catch (error) {
      const isMisuse = error instanceof EscapementError && error.code === 'ERR_NOT_PROCESSING';
      claim(isMisuse && !isHeld, `done failed: ${String(error)}`);
      return;
    }
    claim(isHeld, `done of ${key} was not refused`);
  }

  #get(signal: SignalKind): void {
    this.#ticket(signal, (id, options, isAborted) => {
      this.#model.get(id, isAborted);
      return this.#queue.get(options).then(({ item }) => (item === undefined ? ENDED : textOf(item)));
    });
  }

  #next({ iterator, model }: LoopPair): void {
    const ticket = this.#ticket('none', (id) => {
      this.#model.next(id, model);
      return iterator.next().then(({ value }) => {
        ticket.lease = value;
        return value === undefined ? ENDED : textOf(value.item);
      });
    });
  }

  #abortLoop(index: number): void {
    const loop = this.#loops[index] as LoopPair;
    if (index === 0) return;
    this.#model.abortLoop(loop.model);
    loop.controller.abort(REASON);
  }

  #shutDown(): void {
    const expected = this.#model.shutDown().map(textOf);
    const queue = this.#queue;
    const dropped =
      queue instanceof DelayingQueue ? (queue as DelayingQueue<Item>).shutDown().map(textOf) : [];
    queue.shutDown();
    claim(dropped.join() === expected.join(), `dropped ${dropped.join()}, and not ${expected.join()}`);
  }

  #ticket(
    kind: SignalKind,
    ask: (id: number, options: { signal?: AbortSignal }, isAborted: boolean) => Promise<string>,
  ): Ticket {
    const controller = kind === 'none' ? undefined : new AbortController();
    if (kind === 'fired') controller?.abort(REASON);
    const ticket: Ticket = { id: this.#tickets.length, controller, outcome: undefined, lease: undefined };
    this.#tickets.push(ticket);
    const options = controller === undefined ? {} : { signal: controller.signal };
    ask(ticket.id, options, kind === 'fired').then(
      (outcome) => {
        ticket.outcome = outcome;
      },
      (error: unknown) => {
        ticket.outcome = error === REASON ? ABORTED : ((error as { code?: string }).code ?? String(error));
      },
    );
    return ticket;
  }

  #check(): void {
    const [queue, model] = [this.#queue, this.#model];
    checkQueue(queue);
    if (this.#timer !== undefined) checkTimer(this.#timer);
    const again = [...model.held.values()].filter((holder) => holder.again !== undefined).length;
    const isOver = model.hasEnded && model.held.size === 0;
    const timed = model.waits.filter(({ dueMs }) => dueMs < Infinity).length;
    const pairs: [string, unknown, unknown][] = [
      ['length', queue.length, model.ready.length],
      ['shuttingDown', queue.shuttingDown, model.isShutDown],
      ['wake-ups', this.#clock.pendingWakeups, Math.min(timed, 1)],
      ['depth', this.#metrics.read('workqueue_depth'), isOver ? undefined : model.ready.length + again],
      ['adds', this.#metrics.counts.get('workqueue_adds_total'), model.adds],
      [
        'hand-outs',
        this.#metrics.observed.get('workqueue_queue_duration_seconds')?.length,
        model.handOuts.size,
      ],
    ];
    if (queue instanceof DelayingQueue) pairs.push(['waiting', queue.waiting, model.waits.length]);
    if (queue instanceof RateLimitingQueue) {
      for (const key of 'abcde') {
        const numRequeues = (queue as RateLimitingQueue<Item>).numRequeues({ key, version: -1 });
        pairs.push([`failures of ${key}`, numRequeues, model.failures.get(key) ?? 0]);
      }
    }
    for (const [what, is, must] of pairs)
      claim(is === must, `${what} is ${String(is)}, and must be ${String(must)}`);
    this.#checkSignals();
  }

  /** Nobody listens to a signal who does not wait. */
  #checkSignals(): void {
    const { line, adders, drains } = this.#model;
    const waiting = new Set([...line.map(({ id }) => id), ...adders.map(({ id }) => id), ...drains]);
    for (const { id, controller } of this.#tickets.slice(-30)) {
      if (controller === undefined) continue;
      const listeners = getEventListeners(controller.signal, 'abort').length;
      claim(listeners === (waiting.has(id) ? 1 : 0), `promise ${id} has ${listeners} listeners`);
    }
  }
}

function textOf({ key, version }: Item): string {
  return `${key}${version}`;
}
