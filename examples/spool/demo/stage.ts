import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoOptions } from '../options.ts';
import type { Status } from '../shipper/progress.ts';
import { parseStatus } from '../terminal/status-text.ts';
import { Child, isRunning } from './child.ts';
import type { CollectorOptions } from './collector.ts';
import type { ProcessFate } from './demo-result.ts';
import type { ProducerOptions, ProducerResult } from './producer.ts';
import { Totals } from './totals.ts';

/** Who watches the demonstration. */
export interface Audience {
  event(text: string): void;
  status(status: Status): void;
}

/** Lines of a request. */
export const BATCH_LINES = 200;
const OVERLOADED_EVERY = 40;
/** How the shipper is set up: impatient, because nobody likes to wait. */
const IMPATIENT = ['--batch', BATCH_LINES, '--max-retry', 0.2, '--status', 0.1, '--drain', 15].map(String);
/** How often it is looked whether something has happened. */
const POLL_MS = 10;
/** Many times what a process needs to start. */
const PATIENCE_MS = 15_000;

/** The processes of the demonstration, and what can be done to them. */
export class Stage {
  readonly spool: string;
  /** Where the collectors write. */
  readonly file: string;
  readonly totals = new Totals();
  /** Aborted when a process has ended that nobody has killed. */
  readonly failed = new AbortController();
  readonly #options: DemoOptions;
  readonly #audience: Audience;
  readonly #children: Child[] = [];
  #collector: Child | undefined;
  #port = 0;
  #producer: Child | undefined;
  #result: ProducerResult | undefined;
  #shipper = NaN;
  #isOver = false;

  constructor(directory: string, options: DemoOptions, audience: Audience) {
    this.spool = join(directory, 'spool');
    this.file = join(directory, 'collected.log');
    this.#options = options;
    this.#audience = audience;
  }

  /** The id of the process. */
  get producer(): number {
    return this.#producer?.pid ?? NaN;
  }

  /** The id of the one that runs, or was the last to do so. */
  get collector(): number {
    return this.#collector?.pid ?? NaN;
  }

  /** The same of the shipper. */
  get shipper(): number {
    return this.#shipper;
  }

  /** What it has last told of itself; undefined if it has not yet. */
  get status(): Status | undefined {
    return this.totals.of(this.#shipper);
  }

  /** At the same port each time. */
  async startCollector(signal: AbortSignal): Promise<void> {
    const options: CollectorOptions = {
      file: this.file,
      port: this.#port,
      overloadedEvery: OVERLOADED_EVERY,
    };
    let port: number | undefined;
    this.#collector = this.#start('collector', './collector-process.ts', options, (message) => {
      ({ port } = message as { port: number });
    });
    await this.until(() => port !== undefined, signal);
    if (port === undefined) throw new Error('the collector does not listen');
    this.#port = port;
  }

  startProducer(): void {
    const url = `http://127.0.0.1:${this.#port}/lines`;
    const { ratePerSecond, durability } = this.#options;
    const shipperArgs = ['--spool', this.spool, '--forward', url, '--durability', durability, ...IMPATIENT];
    const options: ProducerOptions = { ratePerSecond, shipperArgs };
    this.#producer = this.#start('producer', './producer-process.ts', options, (message) => {
      const { shipper, result } = message as { shipper?: number; result?: ProducerResult };
      this.#shipper = shipper ?? this.#shipper;
      this.#result = result;
    });
  }

  /** Resolves when it is gone. */
  async killCollector(): Promise<void> {
    await this.#collector?.kill();
  }

  /** Resolves when the producer has another one. */
  async killShipper(signal: AbortSignal): Promise<void> {
    const killed = this.#shipper;
    process.kill(killed, 'SIGKILL');
    await this.until(() => this.#shipper !== killed, signal);
  }

  /** Lets the producer give its last lines, and the shipper forward them. */
  async finish(): Promise<ProducerResult> {
    this.#isOver = true;
    await this.#producer?.end('finish');
    if (this.#result === undefined) throw new Error('the producer has not said what it has produced');
    return this.#result;
  }

  /** Ends whatever runs. */
  async clear(): Promise<void> {
    this.#isOver = true;
    await this.#producer?.end('abort'); // and it ends its shipper
    await this.#collector?.end('abort');
  }

  /** What became of all processes. */
  async fates({ runs }: ProducerResult): Promise<ProcessFate[]> {
    const children = this.#children.map(async ({ name, pid, ended }) => ({ name, pid, end: await ended }));
    const shippers = runs.map(({ pid, end }) => ({ name: 'shipper', pid, end }));
    return [...(await Promise.all(children)), ...shippers].map((process) => ({
      ...process,
      isRunning: isRunning(process.pid),
    }));
  }

  /** Waits for something that is about to happen. If it does not, the self-check says what came of it. */
  async until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS;
    while (!condition() && performance.now() < deadlineMs) await sleep(POLL_MS, undefined, { signal });
  }

  #start(name: string, file: string, options: object, message: (message: unknown) => void): Child {
    const line = (text: string): void => {
      this.#hear(name, text);
    };
    const child = new Child(name, file, options, { message, line });
    this.#children.push(child);
    void child.ended.then(({ code, signal }) => {
      if (!this.#isOver && signal !== 'SIGKILL')
        this.failed.abort(new Error(`the ${name} ended with ${signal ?? `exit code ${String(code)}`}`));
    });
    return child;
  }

  #hear(name: string, text: string): void {
    const status = parseStatus(text);
    if (status === undefined) this.#audience.event(`${name === 'producer' ? 'shipper' : name}: ${text}`);
    else this.#audience.status(this.totals.add(status));
  }
}
