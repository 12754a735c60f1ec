import { EscapementError, outOfRange, wrongType } from '../../core/errors.ts';
import {
  requireFiniteNumber,
  requireFunction,
  requireOptions,
  type OptionNames,
} from '../../core/validate.ts';
import type { Broker, Subscription } from './broker.ts';
import {
  BROKER_OPERATION_NAMES,
  BROKER_OPERATIONS,
  type AnyOperation,
  type BrokerOperation,
} from './broker-base.ts';
import { requireBroker } from './require-broker.ts';
import { seededRandom } from './seeded-random.ts';

/** How bad the way to the broker is. */
export interface FlakyRates {
  /** How likely an operation never gets there, from 0 to 1: it rejects, and nothing has happened. @default 0 */
  readonly failRate?: number | undefined;
  /** How likely its answer is lost, from 0 to 1: it rejects, and it has happened. @default 0 */
  readonly loseReplyRate?: number | undefined;
  /** How long it may take to get there, in milliseconds: any time up to that. @default 0 */
  readonly delayMs?: number | undefined;
}

const RATES: OptionNames<FlakyRates> = { failRate: true, loseReplyRate: true, delayMs: true };

/** Options of {@link flakyBroker}. */
export interface FlakyBrokerOptions extends FlakyRates {
  /** Rates of single operations, instead of the others. */
  readonly operations?: Readonly<Partial<Record<BrokerOperation, FlakyRates>>>;
  /** Where the dice come from, a number from 0 to below 1. @default those of `seed` */
  readonly random?: () => number;
  /** The same operations in the same order have the same fate again. @default 1 */
  readonly seed?: number;
}

const OPTIONS: OptionNames<FlakyBrokerOptions> = { ...RATES, operations: true, random: true, seed: true };

/** How often what has happened. */
export interface FlakyCounts {
  /** All of them. */
  readonly calls: number;
  /** Calls that never got there. */
  readonly failed: number;
  /** Calls whose answer was lost. */
  readonly repliesLost: number;
}

/** A broker that is not always there. */
export interface FlakyBroker extends Broker {
  /** Whether it is as bad as its rates say; if not, everything goes through. On at first. */
  isFlaky: boolean;
  /** Until now. */
  readonly counts: FlakyCounts;
  /** The next calls of an operation never get there, whatever the dice say, and whether it is flaky or not. */
  failNext(operation: BrokerOperation, times?: number): void;
  /** The answers to the next calls of an operation are lost. */
  loseNextReply(operation: BrokerOperation, times?: number): void;
}

type Fate = 'fails' | 'loses its reply' | 'goes through';

/**
 * A broker behind a bad network, for tests: of any broker, also of yours. What it does not let through, or loses the answer
 * to, rejects with `ERR_BROKER_UNAVAILABLE`, and whoever asked cannot tell the one from the other. Hints come as ever.
 *
 * @throws TypeError or RangeError - an argument is wrong.
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
  const network = new BadNetwork(broker, options);
  const operations = BROKER_OPERATION_NAMES.map((operation) => [
    operation,
    (...args: unknown[]) => network.call(operation, args),
  ]);
  const flaky: unknown = Object.assign(network, Object.fromEntries(operations));
  return flaky as FlakyBroker;
}

class BadNetwork {
  readonly clock: Broker['clock'];
  readonly isSelfDriven: boolean;
  isFlaky = true;
  readonly #broker: Broker;
  readonly #options: FlakyBrokerOptions;
  readonly #random: () => number;
  readonly #counts = { calls: 0, failed: 0, repliesLost: 0 };
  readonly #planned = new Map<BrokerOperation, Fate[]>();

  constructor(broker: Broker, options: FlakyBrokerOptions) {
    requireOptions('flakyBroker', options, OPTIONS);
    requireRates('options', options);
    const { operations = {}, random, seed = 1 } = options;
    requireOptions('flakyBroker', operations, { ...BROKER_OPERATIONS, close: true }, 'options.operations');
    for (const [name, rates] of Object.entries(operations)) {
      requireOptions('flakyBroker', rates, RATES, `options.operations.${name}`);
      requireRates(`options.operations.${name}`, rates);
    }
    if (random !== undefined) requireFunction('options.random', random);
    requireFiniteNumber('options.seed', seed);
    this.#broker = broker;
    this.clock = broker.clock;
    this.isSelfDriven = broker.isSelfDriven;
    this.#options = options;
    this.#random = random ?? seededRandom(seed);
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
    const answer = (this.#broker[operation] as AnyOperation).apply(this.#broker, args) as Promise<unknown>;
    if (fate === 'goes through') return answer;
    this.#counts.repliesLost++;
    await this.#lose(operation, answer);
    throw unavailable(operation);
  }

  /** Also that it was refused is not known. */
  async #lose(operation: BrokerOperation, answer: Promise<unknown>): Promise<void> {
    try {
      const reply = await answer;
      // Nobody can end it any more: as if the connection had broken.
      if (operation === 'subscribe') await (reply as Subscription).close();
    } catch {
      // Nobody will ever know.
    }
  }

  #plan(operation: BrokerOperation, fate: Fate, times: number): void {
    if (!BROKER_OPERATION_NAMES.includes(operation))
      throw wrongType('operation', 'an operation of a broker', operation);
    const planned = this.#planned.get(operation) ?? [];
    this.#planned.set(operation, [...planned, ...Array.from({ length: times }, () => fate)]);
  }

  #fateOf(operation: BrokerOperation, { failRate = 0, loseReplyRate = 0 }: FlakyRates): Fate {
    const planned = this.#planned.get(operation)?.shift();
    if (planned !== undefined) return planned;
    if (!this.isFlaky) return 'goes through';
    const dice = this.#random();
    if (dice < failRate) return 'fails';
    return dice < failRate + loseReplyRate ? 'loses its reply' : 'goes through';
  }

  async #delay({ delayMs = 0 }: FlakyRates): Promise<void> {
    if (delayMs === 0) return;
    const waitMs = this.#random() * delayMs;
    await new Promise<void>((resolve) => {
      this.clock.setTimeout(resolve, waitMs);
    });
  }
}

function requireRates(argument: string, { failRate = 0, loseReplyRate = 0, delayMs = 0 }: FlakyRates): void {
  const numbers = { failRate, loseReplyRate, delayMs };
  for (const [name, value] of Object.entries(numbers)) {
    requireFiniteNumber(`${argument}.${name}`, value);
    if (value < 0) throw outOfRange(`${argument}.${name}`, 'at least 0', value);
  }
  const sum = failRate + loseReplyRate;
  if (sum > 1) throw outOfRange(`${argument}.failRate + ${argument}.loseReplyRate`, 'at most 1', sum);
}

function unavailable(operation: BrokerOperation): EscapementError {
  return new EscapementError('ERR_BROKER_UNAVAILABLE', 'the broker has not answered', {
    op: `FlakyBroker.${operation}`,
  });
}
