import { Output } from './output.ts';

/** Exit codes of a command. */
export const EXIT_CODES = {
  /** Success. */
  ok: 0,
  /** Done, with a result that needs attention: damage, or a loss. */
  problems: 1,
  /** Not done: wrong usage, or something that the command needs cannot be read. */
  failed: 2,
  /** Ended by Ctrl-C: 128 and the number of the signal, as in shells. */
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143,
} as const;

/** Where a command runs. */
export interface Terminal {
  readonly out: Output;
  /** For everything that is not the result. */
  readonly err: Output;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  exitCode: number;
}

export function hostTerminal(signal: AbortSignal): Terminal {
  return {
    out: new Output(process.stdout),
    err: new Output(process.stderr),
    signal,
    exitCode: EXIT_CODES.ok,
  };
}

/** Runs an action that the first Ctrl-C aborts; the second one ends the process at once. */
export async function interruptible<R>(action: (signal: AbortSignal) => Promise<R>): Promise<R> {
  const controller = new AbortController();
  const interrupt = (): void => {
    controller.abort(new Error('interrupted'));
  };
  process.once('SIGINT', interrupt);
  try {
    return await action(controller.signal);
  } finally {
    process.off('SIGINT', interrupt);
  }
}

/** The exit code of a command is the worst one. */
export function endWith(terminal: Terminal, code: number): void {
  terminal.exitCode = Math.max(terminal.exitCode, code);
}

export function printError({ err }: Terminal, message: string): Promise<void> {
  return err.print(`${err.paint('red', 'escapement:')} ${message}`);
}
