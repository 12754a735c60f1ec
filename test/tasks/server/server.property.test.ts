import { once } from 'node:events';
import { EmbeddedBroker, RevokeTask, Server, SkipRetry, Task, Client } from 'escapement/tasks';
import type { Broker, CancelOutcome, Handler } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import fc from 'fast-check';
import { expect } from 'vitest';
import { stateOf } from '../../conformance/broker/support.ts';
import { raise } from '../support/bench.ts';
import { withMethods } from '../support/with-methods.ts';
import { unavailable, WALL_MS } from './support/world.ts';
import { testProperty } from '../../runs.ts';

/** What a handler does. */
type Behaviour = (clock: ManualClock, signal: AbortSignal) => unknown;

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  return: () => 1,
  resolve: () => Promise.resolve(),
  throw: raise(new Error('thrown')),
  reject: () => Promise.reject(new Error('rejected')),
  skip: raise(new SkipRetry()),
  revoke: raise(new RevokeTask()),
  slow: (clock) => new Promise<void>((resolve) => clock.setTimeout(resolve, 4_000)),
  deaf: () => new Promise(() => undefined),
  obedient: async (_clock, signal) => {
    await once(signal, 'abort');
    throw signal.reason;
  },
};

/** What the broker does when it is asked for something: it may fail before, or after. */
type Answer = 'well' | 'before' | 'after';

const FRAGILE = [
  ...(['dequeue', 'complete', 'retry', 'archive', 'release', 'discard'] as const),
  ...(['extendLeases', 'recover'] as const),
];

const scenarios = fc.record({
  tasks: fc.array(
    fc.record({
      behaviour: fc.constantFrom(...Object.keys(BEHAVIOURS)),
      atMs: fc.nat({ max: 20_000 }),
      timeoutMs: fc.constantFrom(100, 3_000, 60_000),
      maxRetry: fc.nat({ max: 2 }),
      queue: fc.constantFrom('a', 'b'),
      key: fc.constantFrom(undefined, 'x', 'y'),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  cancels: fc.array(
    fc.record({
      task: fc.nat({ max: 11 }),
      atMs: fc.nat({ max: 30_000 }),
      outcome: fc.constantFrom<CancelOutcome>('retry', 'archive', 'delete'),
    }),
    { maxLength: 4 },
  ),
  answers: fc.array(fc.constantFrom<Answer>('well', 'well', 'well', 'before', 'after'), { maxLength: 60 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  strictPriority: fc.boolean(),
  limits: fc.option(
    fc.record(
      {
        concurrency: fc.constantFrom(1, 2),
        rate: fc.constant({ tasks: 1, perMs: 2_000 }),
        perKey: fc.record({
          concurrency: fc.constant(1),
          rate: fc.constant({ tasks: 1, perMs: 5_000, burst: 2 }),
        }),
      },
      { requiredKeys: [] },
    ),
    { nil: undefined },
  ),
  /** The first server ends then, and another one goes on. */
  shutdownAtMs: fc.nat({ max: 40_000 }),
});
type Scenario = typeof scenarios extends fc.Arbitrary<infer S> ? S : never;

/** A broker whose answers get lost as the scenario has it, and which is well after that. */
function fragile(broker: EmbeddedBroker, answers: Answer[]): Broker {
  const methods: Record<string, unknown> = {};
  for (const name of FRAGILE) {
    const method = broker[name].bind(broker) as (...args: unknown[]) => Promise<unknown>;
    methods[name] = async (...args: unknown[]) => {
      const answer = answers.shift() ?? 'well';
      if (answer === 'before') throw unavailable;
      const result = await method(...args);
      if (answer === 'after') throw unavailable;
      return result;
    };
  }
  return withMethods<Broker>(broker, methods);
}

class Run {
  readonly clock = new ManualClock({ wallMs: WALL_MS });
  readonly scenario: Scenario;
  readonly servers: Server[] = [];
  started = 0;
  over = 0;

  constructor(scenario: Scenario) {
    this.scenario = scenario;
  }

  async play(): Promise<void> {
    const store = await EmbeddedBroker.open({ clock: this.clock });
    const broker = fragile(store, [...this.scenario.answers]);
    const ids = this.#plan(store);
    await this.#serve(broker).start(this.#handler);
    await this.clock.advanceAsync(this.scenario.shutdownAtMs);
    const closed = this.servers[0]?.shutdown();
    await this.#serve(broker).start(this.#handler);
    await this.clock.advanceAsync(this.scenario.limits === undefined ? 600_000 : 6_000_000);
    await closed;
    await this.servers[1]?.shutdown();
    await this.clock.advanceAsync(0);
    checkBroker(store);
    expect(this.over).toBe(this.started);
    for (const task of ids) expect(await stateOf(store, task)).toMatch(/gone|archived/);
    expect(this.clock.pendingWakeups).toBeLessThanOrEqual(1); // of the broker: what is archived is removed some day
    await store.close();
    expect(this.clock.pendingWakeups).toBe(0);
  }

  #plan(store: EmbeddedBroker): { queue: string; id: string }[] {
    const client = new Client({ broker: store });
    const { tasks, cancels } = this.scenario;
    for (const [i, { behaviour, atMs, timeoutMs, maxRetry, queue, key }] of tasks.entries()) {
      const task = new Task(behaviour, undefined, { taskId: String(i), timeoutMs, maxRetry, queue, key });
      this.clock.setTimeout(() => void client.enqueue(task), atMs);
    }
    for (const { task, atMs, outcome } of cancels) {
      const request = { taskId: String(task), queue: undefined, outcome };
      this.clock.setTimeout(() => void store.cancel(request, 0), atMs);
    }
    return tasks.map(({ queue }, i) => ({ queue, id: String(i) }));
  }

  #serve(broker: Broker): Server {
    const { concurrency, strictPriority, limits } = this.scenario;
    const queues = { a: 2, b: 1 };
    const retryDelayMs = (): number => 1_000;
    const options = { broker, concurrency, strictPriority, queues, retryDelayMs };
    const server = new Server({ ...options, ...(limits && { limits: { a: limits, b: limits } }) });
    server.on('started', () => {
      this.started++;
      expect(server.activeCount).toBeLessThanOrEqual(concurrency);
    });
    for (const name of ['completed', 'retried', 'archived', 'cancelled', 'released', 'lost'] as const) {
      server.on(name, () => this.over++);
    }
    this.servers.push(server);
    return server;
  }

  readonly #handler: Handler = (task, { signal }) => BEHAVIOURS[task.type]?.(this.clock, signal);
}

testProperty(
  'every run ends once, every task ends and nothing is left, whatever handlers and the broker do',
  fc.asyncProperty(scenarios, async (scenario) => {
    await new Run(scenario).play();
  }),
  100,
);
