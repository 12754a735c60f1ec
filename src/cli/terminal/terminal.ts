import { Output } from './output.ts';

/** Where a command runs: what it writes to, and who may stop it. */
export interface Terminal {
  readonly out: Output;
  /** For everything that is not the result. */
  readonly err: Output;
  /** Aborted when whoever sits there wants it to end. */
  readonly signal: AbortSignal;
  /** What the command will end with. */
  exitCode: number;
}

/** This process's. */
export function hostTerminal(signal: AbortSignal): Terminal {
  return { out: new Output(process.stdout), err: new Output(process.stderr), signal, exitCode: 0 };
}
