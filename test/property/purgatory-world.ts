import type { CompletionReason } from 'escapement';
import type { Action, Scenario } from './purgatory-actions.ts';
import { ModelSide } from './purgatory-model.ts';
import { RealSide, type Behaviour, type Side } from './purgatory-side.ts';

/** How many scripts run in a world: operations that trigger themselves have an end. */
const SCRIPTS = 100;

/** What a script throws on purpose. */
class Deliberate extends Error {
  constructor(id: number) {
    super(`deliberate ${id}`);
  }
}

/** What a player knows of an operation or a wait. */
interface Subject {
  readonly isWait: boolean;
  readonly script: number;
  holds: boolean;
}

type Callback = 'onTry' | 'onComplete' | 'onExpiration';

/** Plays a scenario on a side, and writes down everything that happens. It knows nothing of the other side. */
class Player implements Behaviour {
  readonly log: string[] = [];
  readonly settled: string[] = [];
  readonly #scenario: Scenario;
  readonly #side: Side;
  readonly #subjects: Subject[] = [];
  /** The operations that are tried now: they may not be watched anew before that is over. */
  readonly #tried: number[] = [];
  #scriptsLeft = SCRIPTS;
  #depth = 0;

  constructor(scenario: Scenario, makeSide: (behaviour: Behaviour) => Side) {
    this.#scenario = scenario;
    this.#side = makeSide(this);
  }

  /** Does an action; whatever it throws is written down, and so are the gauges after it. */
  act(action: Action): void {
    let result: unknown;
    try {
      result = this.#do(action);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      result = `threw ${code ?? message}`;
    }
    this.#write(`${action.kind}: ${JSON.stringify({ result })} ${this.#side.gauges().join(' ')}`);
  }

  /** What became of all operations. */
  states(): string {
    return this.#subjects
      .map(({ isWait }, id) => (isWait ? 'wait' : this.#side.stateOf(id).map(Number).join('')))
      .join(' ');
  }

  onTry(id: number): boolean {
    this.#write(`try ${id}`);
    this.#tried.push(id);
    try {
      this.#play(id, 'onTry');
    } finally {
      this.#tried.pop();
    }
    return this.#subject(id).holds;
  }

  onComplete(id: number, reason: CompletionReason): void {
    this.#write(`complete ${id} ${reason}`);
    this.#play(id, 'onComplete');
  }

  onExpiration(id: number): void {
    this.#write(`expiration of ${id}`);
    this.#play(id, 'onExpiration');
  }

  onError(id: number, error: unknown): void {
    this.#write(`error of ${id}: ${error instanceof Deliberate ? error.message : String(error)}`);
  }

  onSettled(id: number, outcome: string): void {
    this.settled.push(`wait ${id} ${outcome}`);
  }

  #do(action: Action): unknown {
    const side = this.#side;
    switch (action.kind) {
      case 'watch':
      case 'wait':
        return this.#enter(action);
      case 'watchAgain': {
        const id = this.#pick(action.pick, false);
        if (id === undefined || this.#tried.includes(id)) return undefined;
        return side.watch(id, action.on, action.keys);
      }
      case 'check':
        return side.check(action.on, action.key);
      case 'cancelForKey':
        return side.cancelForKey(action.on, action.key);
      case 'change':
        Object.assign(this.#subjects[action.pick % this.#subjects.length] ?? {}, { holds: action.holds });
        return undefined;
      case 'force':
      case 'cancel':
      case 'maybe': {
        const id = this.#pick(action.pick, false);
        return id === undefined ? undefined : side[action.kind](id);
      }
      case 'abort': {
        const id = this.#pick(action.pick, true);
        if (id !== undefined) side.abort(id);
        return undefined;
      }
      case 'close':
        return side.close(action.on, action.pending);
      case 'pass':
        side.pass(action.ms);
        return undefined;
      case 'throw':
        return undefined;
    }
  }

  #enter({ kind, on, keys, delayMs, holds, script }: Extract<Action, { kind: 'watch' | 'wait' }>): unknown {
    const id = this.#subjects.length;
    this.#subjects.push({ isWait: kind === 'wait', script, holds });
    if (kind === 'wait') {
      this.#side.wait(id, on, keys, delayMs);
      return undefined;
    }
    this.#side.create(id, delayMs);
    return this.#side.watch(id, on, keys);
  }

  #play(id: number, callback: Callback): void {
    const actions = this.#scenario.scripts[this.#subject(id).script]?.[callback] ?? [];
    if (actions.length === 0 || this.#scriptsLeft-- <= 0) return;
    this.#depth++;
    try {
      for (const action of actions) {
        if (action.kind === 'throw') throw new Deliberate(id);
        this.act(action);
      }
    } finally {
      this.#depth--;
    }
  }

  #pick(pick: number, isWait: boolean): number | undefined {
    const ids = [...this.#subjects.keys()].filter((id) => this.#subject(id).isWait === isWait);
    return ids[pick % Math.max(1, ids.length)];
  }

  #subject(id: number): Subject {
    return this.#subjects[id] as Subject;
  }

  #write(line: string): void {
    this.log.push('  '.repeat(this.#depth) + line);
  }
}

/** One scenario, on the real purgatories and on the model, compared after each step. */
export class PurgatoryWorld {
  readonly #scenario: Scenario;
  readonly #real: Player;
  readonly #model: Player;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#real = new Player(scenario, (behaviour) => new RealSide(behaviour));
    this.#model = new Player(scenario, (behaviour) => new ModelSide(behaviour));
  }

  async run(): Promise<void> {
    for (const step of this.#scenario.steps) await this.#step(step);
    await this.#step({ kind: 'pass', ms: 100 });
    for (const on of [0, 1] as const) await this.#step({ kind: 'close', on, pending: 'complete' });
  }

  async #step(action: Action): Promise<void> {
    for (const player of [this.#real, this.#model]) player.act(action);
    // The longest chain of promise jobs from the end of a wait to who waits.
    for (let i = 0; i < 3; i++) await Promise.resolve();
    compare(action, this.#real.log.splice(0), this.#model.log.splice(0));
    compare(action, this.#real.settled.splice(0), this.#model.settled.splice(0));
    compare(action, [this.#real.states()], [this.#model.states()]);
  }
}

function compare(action: Action, real: readonly string[], model: readonly string[]): void {
  const length = Math.max(real.length, model.length);
  for (let i = 0; i < length; i++) {
    if (real[i] === model[i]) continue;
    const before = real.slice(0, i).join('\n');
    throw new Error(
      `in ${JSON.stringify(action)}\n${before}\nit did: ${real[i] ?? 'nothing'}\nand must: ${model[i] ?? 'do nothing'}`,
    );
  }
}
