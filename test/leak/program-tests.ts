import { expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';

/**
 * Tests of programs with one beginning. A program runs in a process of its own, in real time, and must end by itself with these
 * lines printed: one that does not is killed, and has no status.
 */
export function programTests(
  beginning: string,
): (name: string, lines: readonly string[]) => (program: string) => void {
  return (name: string, lines: readonly string[]) => (program: string) => {
    test(name, () => {
      const { status, lines: printed } = runProgram(beginning + program);
      expect([status, printed]).toEqual([0, lines]);
    });
  };
}
