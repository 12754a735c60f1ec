import fc from 'fast-check';
import type { BackendQueue, Delivery } from 'escapement/diskqueue';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'vitest';
import { action, weighted, type ValueOf } from './actions.ts';
import { dataOf, QueueModel, type ModelMessage } from './disk-queue-model.ts';

/** What can be done to any queue. */
export type QueueAction = ValueOf<ReturnType<typeof actionWith>>;

const which = fc.nat(1_000);
const turns = fc.nat(6);

const actionWith = (length: fc.Arbitrary<number>) =>
  weighted(
    [6, action('put', { lengths: fc.array(length, { minLength: 1, maxLength: 8 }) })],
    [6, action('receive', { count: fc.integer({ min: 1, max: 5 }) })],
    [8, action('ack', { which })],
    [5, action('nack', { which })],
    [3, action('abort', { turns })],
    [2, action('turns', { turns })],
    [1, action(['settle again', 'empty'])],
    [3, action('special')],
  );

/** @param length - of a message, in bytes. */
export const queueAction: (length: fc.Arbitrary<number>) => fc.Arbitrary<QueueAction> = actionWith;

/** A message that somebody has, here and in the model. */
interface Held {
  readonly message: ModelMessage;
  readonly delivery: Delivery;
}

const REASON = new Error('aborted by the test');

/** A queue beside its model: every action is done to both, and what they give is compared. */
export abstract class QueueWorld<Q extends BackendQueue> {
  queue!: Q;
  readonly model = new QueueModel();
  #held: Held[] = [];
  #settled: Delivery[] = [];
  #waiting: Promise<Delivery>[] = [];
  #nextId = 1;

  async run(actions: readonly QueueAction[]): Promise<void> {
    this.queue = await this.open();
    try {
      for (const action of actions) {
        await this.#do(action);
        await this.#serve();
        expect(this.queue.depth, JSON.stringify(action)).toBe(this.model.depth);
        this.check(action);
      }
      while (this.model.depth > 0) {
        while (this.#held.length > 0) this.#settle(0, true);
        await this.#receive(this.model.ready.length);
      }
      expect(this.queue.depth).toBe(0);
    } finally {
      await this.end();
    }
  }

  protected abstract open(): Promise<Q>;
  /** What only this kind of queue can do. */
  protected abstract special(): Promise<void>;

  /** What else is true after an action. */
  protected check(_action: QueueAction): void {
    // of any queue, nothing
  }

  protected async end(): Promise<void> {
    await this.queue.close();
  }

  /** Whether an error is one that the test has made: then a receive is tried again, and a put was not done. */
  protected isExpected(_error: unknown): boolean {
    return false;
  }

  /** The queue was closed and another one opened on what it has left. */
  protected async reopened(queue: Q, keepsPrefixOnly = false): Promise<void> {
    this.queue = queue;
    for (const waiting of this.#waiting.splice(0)) {
      await expect(waiting).rejects.toMatchObject({ code: 'ERR_QUEUE_CLOSED' });
    }
    this.#forget();
    this.model.reopen(keepsPrefixOnly);
  }

  async #do(action: QueueAction): Promise<void> {
    if (action.kind === 'put') await this.#put(action.lengths);
    else if (action.kind === 'receive') await this.#receive(action.count);
    else if (action.kind === 'ack' || action.kind === 'nack')
      this.#settle(action.which, action.kind === 'ack');
    else if (action.kind === 'abort') await this.#abort(action.turns);
    else if (action.kind === 'turns') await this.#turns(action.turns);
    else if (action.kind === 'empty') await this.#empty();
    else if (action.kind === 'settle again') this.#settleAgain();
    else await this.special();
  }

  async #put(lengths: readonly number[]): Promise<void> {
    const messages = lengths.map((length) => ({ id: this.#nextId++, length }));
    const results = await Promise.allSettled(messages.map((message) => this.queue.put(dataOf(message))));
    for (const [i, result] of results.entries()) {
      if (result.status === 'fulfilled') this.model.put(messages[i] as ModelMessage);
      else if (!this.isExpected(result.reason)) throw result.reason;
    }
  }

  async #receive(count: number): Promise<void> {
    for (let i = 0; i < count; i++) this.#waiting.push(this.#receiving());
    await this.#serve();
  }

  /** A receive that may be rejected before anybody looks. */
  #receiving(): Promise<Delivery> {
    const receiving = this.queue.receive();
    receiving.catch(() => undefined);
    return receiving;
  }

  /** Whoever waits has what the model says, as long as it has something. */
  async #serve(): Promise<void> {
    while (this.#waiting.length > 0 && this.model.ready.length > 0) {
      const delivery = await this.#retrying(this.#waiting[0] as Promise<Delivery>);
      if (delivery !== undefined) {
        void this.#waiting.shift();
        this.#take(delivery);
      }
    }
  }

  /** An expected error rejects every receive that was pending then: these are tried again, behind those that came later. */
  async #retrying(first: Promise<Delivery>): Promise<Delivery | undefined> {
    try {
      return await first;
    } catch (error) {
      if (!this.isExpected(error)) throw error;
      const waiting = this.#waiting;
      const failed = await Promise.all(waiting.map((receiving) => this.#hasFailed(receiving)));
      const again = failed.filter(Boolean).map(() => this.#receiving());
      this.#waiting = [...waiting.filter((_, at) => failed[at] !== true), ...again];
      return undefined;
    }
  }

  /** Whether a receive has been rejected by now, with an expected error. */
  #hasFailed(receiving: Promise<Delivery>): Promise<boolean> {
    const failed = receiving.then(
      () => false,
      (error: unknown) => {
        if (this.isExpected(error)) return true;
        throw error;
      },
    );
    return Promise.race([failed, nextTurn(false)]);
  }

  #take(delivery: Delivery): void {
    const message = this.model.handOut();
    expect(message).toBeDefined();
    const expected = dataOf(message as ModelMessage);
    if (!expected.equals(delivery.data)) expect(Buffer.from(delivery.data)).toEqual(expected);
    delivery.data.fill(0xee); // it is a copy
    this.#held.push({ message: message as ModelMessage, delivery });
  }

  #settle(index: number, isDone: boolean): void {
    if (this.#held.length === 0) return;
    const [held] = this.#held.splice(index % this.#held.length, 1) as [Held];
    this.model.settle(held.message, isDone);
    if (isDone) held.delivery.ack();
    else held.delivery.nack();
    this.#settled.push(held.delivery);
  }

  #settleAgain(): void {
    for (const delivery of this.#settled) {
      delivery.nack();
      delivery.ack();
    }
  }

  /** A receive that is aborted after some turns: it has what is first, or nothing is gone. */
  async #abort(turns: number): Promise<void> {
    if (this.#waiting.length > 0) return; // whoever waits is first
    const controller = new AbortController();
    const receiving = this.queue.receive({ signal: controller.signal });
    receiving.catch(() => undefined);
    await this.#turns(turns);
    controller.abort(REASON);
    try {
      this.#take(await receiving);
    } catch (error) {
      if (error !== REASON && !this.isExpected(error)) throw error;
    }
  }

  async #turns(turns: number): Promise<void> {
    for (let i = 0; i < turns; i++) await nextTurn();
  }

  /** Also if it rejects, the messages are gone; not for sure over a reopen, unless a flush came between. */
  async #empty(): Promise<void> {
    try {
      await this.queue.empty();
    } catch (error) {
      if (!this.isExpected(error)) throw error;
    }
    this.#forget();
    this.model.empty();
  }

  /** What is handed out is nobody's any more. */
  #forget(): void {
    this.#settled.push(...this.#held.splice(0).map(({ delivery }) => delivery));
  }
}
