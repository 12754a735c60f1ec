import { CONSOLE_VIEW, consoleView } from '../../core/console-view.ts';
import { EscapementError, outOfRange, wrongType } from '../../core/errors.ts';
import {
  checkOptions,
  milliseconds,
  readOptions,
  type OptionTable,
  type Resolved,
} from '../../core/options.ts';
import {
  requireFiniteNumber,
  requireFraction,
  requireFunction,
  requireIntegerAtLeast,
} from '../../core/validate.ts';
import { requireBroker } from '../argument-checks.ts';
import type { AnyOperation } from './broker-base.ts';
import { BROKER_OPERATION_NAMES, type BrokerOperation } from './broker-operations.ts';
import type { Broker, Subscription } from './broker.ts';

/** How often operations of a flaky broker fail, and how long they take. */
export interface FlakyRates {
  /** Probability that an operation fails before it reaches the broker, from 0 to 1: it rejects, and has not happened. @default 0 */
  readonly failRate?: number | undefined;
  /** Probability that its reply is lost, from 0 to 1: it rejects, and has happened. @default 0 */
  readonly loseReplyRate?: number | undefined;
  /** Maximum time until it reaches the broker, in milliseconds: it takes a random part of that. @default 0 */
  readonly delayMs?: number | undefined;
}

/** Options of {@link flakyBroker}. */
export interface FlakyBrokerOptions extends FlakyRates {
  /** Rates of single operations, which replace the others. */
  readonly operations?: Readonly<Partial<Record<BrokerOperation, FlakyRates>>> | undefined;
  /** Returns random numbers from 0 to below 1. @default a generator that starts with `seed` */
  readonly random?: (() => number) | undefined;
  /** Start of the random numbers: the same operations in the same order fail again. @default 1 */
  readonly seed?: number | undefined;
}

const RATES = {
  failRate: [requireFraction, 0],
  loseReplyRate: [requireFraction, 0],
  delayMs: [milliseconds(0), 0],
} satisfies OptionTable<FlakyRates>;

const OPTIONS = {
  ...RATES,
  operations: [requireOperations, undefined],
  random: [requireFunction, undefined],
  seed: [requireFiniteNumber, 1],
} satisfies OptionTable<FlakyBrokerOptions>;

/** Counts of a flaky broker. */
export interface FlakyCounts {
  /** Calls of all operations. */
  readonly calls: number;
  /** Calls that failed before they reached the broker. */
  readonly failed: number;
  /** Calls whose reply was lost. */
  readonly repliesLost: number;
}

/** A broker behind a network that fails. */
export interface FlakyBroker extends Broker {
  /** Whether operations fail at the given rates; if false, all succeed. True at first. */
  isFlaky: boolean;
  /** Counts until now. */
  readonly counts: FlakyCounts;
  /** Makes the next calls of an operation fail before they reach the broker, whatever the rates and `isFlaky` are. */
  failNext(operation: BrokerOperation, times?: number): void;
  /** Makes the replies to the next calls of an operation get lost, in the same way. */
  loseNextReply(operation: BrokerOperation, times?: number): void;
}

type Fate = 'fails' | 'loses its reply' | 'succeeds';

/**
 * Returns a broker behind a network that fails, for tests of anything that uses a broker. An operation that fails, or whose reply
 * is lost, rejects with `ERR_BROKER_UNAVAILABLE`: the caller cannot distinguish the two. Notifications are not affected.
 *
 * @throws TypeError or RangeError - an argument is not valid.
 *
 * @example
 * ```ts
 * const broker = flakyBroker(await EmbeddedBroker.open({ clock }), { failRate: 0.1, loseReplyRate: 0.1, seed: 7 });
 * const server = new Server({ broker });
 * // … the test …
 * broker.isFlaky = false;
 * ```
 */
export function flakyBroker(broker: Broker, options: FlakyBrokerOptions = {}): FlakyBroker {
  requireBroker('broker', broker);
  const network = new FlakyNetwork(broker, options);
  for (const operation of BROKER_OPERATION_NAMES) {
    // Not enumerable: a console does not print them.
    const value = (...args: unknown[]): unknown => network.call(operation, args);
    Object.defineProperty(network, operation, { value, writable: true, configurable: true });
  }
  return network as unknown as FlakyBroker;
}

class FlakyNetwork {
  readonly clock: Broker['clock'];
  readonly maintenance: Broker['maintenance'];
  isFlaky = true;
  readonly #broker: Broker;
  readonly #options: Resolved<FlakyBrokerOptions, typeof OPTIONS>;
  readonly #random: () => number;
  readonly #counts = { calls: 0, failed: 0, repliesLost: 0 };
  readonly #planned = new Map<BrokerOperation, Fate[]>();

  constructor(broker: Broker, options: FlakyBrokerOptions) {
    this.#options = readOptions('flakyBroker', options, OPTIONS);
    requireSum('options', options);
    this.#random = this.#options.random ?? seededRandom(this.#options.seed);
    this.#broker = broker;
    this.clock = broker.clock;
    this.maintenance = broker.maintenance;
  }

  get counts(): FlakyCounts {
    return { ...this.#counts };
  }

  close(): Promise<void> {
    return this.#broker.close();
  }

  failNext(operation: BrokerOperation, times = 1): void {
    this.#plan(operation, 'fails', times);
  }

  loseNextReply(operation: BrokerOperation, times = 1): void {
    this.#plan(operation, 'loses its reply', times);
  }

  async call(operation: BrokerOperation, args: unknown[]): Promise<unknown> {
    this.#counts.calls++;
    const rates = this.#options.operations?.[operation] ?? this.#options;
    const fate = this.#fateOf(operation, rates);
    if (this.isFlaky) await this.#delay(rates);
    if (fate === 'fails') {
      this.#counts.failed++;
      throw unavailable(operation);
    }
    const answer = (this.#broker[operation] as AnyOperation).call(this.#broker, ...args) as Promise<unknown>;
    if (fate === 'succeeds') return answer;
    this.#counts.repliesLost++;
    await this.#lose(operation, answer);
    throw unavailable(operation);
  }

  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...{ clock: undefined, maintenance: undefined, broker: this.#broker, counts: this.counts },
    }));
  }

  async #lose(operation: BrokerOperation, answer: Promise<unknown>): Promise<void> {
    try {
      const reply = await answer;
      // No caller has the subscription, so none can end it: a connection that breaks ends it, too.
      if (operation === 'subscribe') await (reply as Subscription).close();
    } catch {
      // The error is lost with the reply.
    }
  }

  #plan(operation: BrokerOperation, fate: Fate, times: number): void {
    if (!BROKER_OPERATION_NAMES.includes(operation))
      throw wrongType('operation', 'an operation of a broker', operation);
    requireIntegerAtLeast('times', 0, times);
    const planned = this.#planned.get(operation) ?? [];
    this.#planned.set(operation, [...planned, ...Array.from({ length: times }, () => fate)]);
  }

  #fateOf(operation: BrokerOperation, { failRate = 0, loseReplyRate = 0 }: FlakyRates): Fate {
    const planned = this.#planned.get(operation)?.shift();
    if (planned !== undefined) return planned;
    if (!this.isFlaky) return 'succeeds';
    const chance = this.#random();
    if (chance < failRate) return 'fails';
    return chance < failRate + loseReplyRate ? 'loses its reply' : 'succeeds';
  }

  async #delay({ delayMs = 0 }: FlakyRates): Promise<void> {
    if (delayMs === 0) return;
    const waitMs = this.#random() * delayMs;
    await new Promise<void>((resolve) => {
      this.clock.setTimeout(resolve, waitMs);
    });
  }
}

function requireOperations(argument: string, operations: unknown): void {
  const table = Object.fromEntries(
    BROKER_OPERATION_NAMES.map((name) => [name, [requireRates, undefined] as const]),
  );
  checkOptions('flakyBroker', operations, table, argument);
}

function requireRates(argument: string, rates: unknown): void {
  checkOptions('flakyBroker', rates, RATES, argument);
  requireSum(argument, rates as FlakyRates);
}

function requireSum(argument: string, { failRate = 0, loseReplyRate = 0 }: FlakyRates): void {
  const sum = failRate + loseReplyRate;
  if (sum > 1) throw outOfRange(`${argument}.failRate + ${argument}.loseReplyRate`, 'at most 1', sum);
}

function unavailable(operation: BrokerOperation): EscapementError {
  return new EscapementError('ERR_BROKER_UNAVAILABLE', 'the broker has not answered', {
    op: `FlakyBroker.${operation}`,
  });
}

/** Returns a generator of numbers from 0 to below 1, the same for the same seed: a Weyl sequence, mixed by two multiplications. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}
