import { TimerTask, type SystemTimer } from 'escapement';

/** A task that does what it is told, and counts how often it ran. */
export class TestTask extends TimerTask {
  runs = 0;
  readonly #onRun: (task: TestTask) => void;

  constructor(delayMs: number, onRun: (task: TestTask) => void = () => undefined) {
    super(delayMs);
    this.#onRun = onRun;
  }

  override run(): void {
    this.runs++;
    this.#onRun(this);
  }
}

/** Adds a new task to the timer and returns it. */
export function addTask(timer: SystemTimer, delayMs: number, onRun?: (task: TestTask) => void): TestTask {
  const task = new TestTask(delayMs, onRun);
  timer.add(task);
  return task;
}

/** Makes tasks that write their name down when they run. */
export class Journal {
  readonly entries: unknown[] = [];

  /** The callback for `schedule`: writes its argument down. */
  readonly write = (entry: unknown): unknown => this.entries.push(entry);

  task(delayMs: number, name: unknown = delayMs, then: (task: TestTask) => void = () => undefined): TestTask {
    return new TestTask(delayMs, (task) => {
      this.write(name);
      then(task);
    });
  }

  /** Adds a task to the timer and returns it. */
  add(
    timer: SystemTimer,
    delayMs: number,
    name: unknown = delayMs,
    then: (task: TestTask) => void = () => undefined,
  ): TestTask {
    const task = this.task(delayMs, name, then);
    timer.add(task);
    return task;
  }

  /** What was written since the last call. */
  take(): unknown[] {
    return this.entries.splice(0);
  }
}
