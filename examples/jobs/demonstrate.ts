import { runDemo } from './demo/run-demo.ts';
import { selfCheck } from './demo/self-check.ts';
import type { DemoOptions } from './options.ts';
import { Screen } from './terminal/screen.ts';

const EXIT_FAILED = 1;
/** What a shell expects of a program that ended because of Ctrl-C: 128 + SIGINT. */
const EXIT_INTERRUPTED = 130;

/** @returns the exit code. */
export async function demonstrate(options: DemoOptions, signal: AbortSignal): Promise<number> {
  const screen = new Screen(false);
  try {
    const result = await runDemo(options, screen, signal);
    const complaints = selfCheck(result);
    screen.showResult(result);
    screen.showVerdict(complaints);
    return complaints.length > 0 ? EXIT_FAILED : 0;
  } catch (error) {
    if (!signal.aborted) throw error;
    screen.event('interrupted');
    return EXIT_INTERRUPTED;
  }
}
