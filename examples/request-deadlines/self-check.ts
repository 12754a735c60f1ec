import type { DemoResult } from './demo-result.ts';
import { formatCount, formatMs, formatPercent } from '../shared/number-format.ts';

/** Beyond five standard deviations chance is no excuse: it explains one run in two million. */
const ALLOWED_DEVIATIONS = 5;
/** The law knows nothing of the timer's tick, which moves requests that finish within it of their deadline. */
const TICK_SLACK = 0.002;

/** What a run promised and did not keep; empty if all is well. */
export function selfCheck(result: DemoResult): string[] {
  return [
    countsAddUp(result),
    nothingLeft(result),
    noneEarly(result),
    clientsAgree(result),
    shareAsExpected(result),
  ].filter((complaint) => complaint !== undefined);
}

function countsAddUp({ requests, answered, timedOut, abandoned }: DemoResult): string | undefined {
  if (requests === answered + timedOut + abandoned) return undefined;
  return `${formatCount(requests)} requests are not ${formatCount(answered)} answered + ${formatCount(timedOut)} timed out + ${formatCount(abandoned)} abandoned`;
}

function nothingLeft({ leftInTimer }: DemoResult): string | undefined {
  if (leftInTimer === 0) return undefined;
  return `${formatCount(leftInTimer)} timers were left in the wheels after the last request`;
}

function noneEarly({ latenessMs }: DemoResult): string | undefined {
  const earliest = latenessMs[0] ?? 0;
  if (earliest >= 0) return undefined;
  return `a request timed out ${formatMs(-earliest)} before its deadline`;
}

/** After an interruption answers are lost on the way, and long requests more often than short ones. */
function clientsAgree({ isInterrupted, answered, timedOut, load }: DemoResult): string | undefined {
  if (isInterrupted) return undefined;
  if (load.answered === answered && load.timedOut === timedOut && load.failed === 0) return undefined;
  return `the clients saw ${formatCount(load.answered)} answers, ${formatCount(load.timedOut)} timeouts and ${formatCount(load.failed)} failures, the server ${formatCount(answered)} and ${formatCount(timedOut)}`;
}

function shareAsExpected({
  isInterrupted,
  requests,
  timedOut,
  expectedShare,
}: DemoResult): string | undefined {
  if (isInterrupted || requests === 0) return undefined;
  const measured = timedOut / requests;
  const deviation = Math.sqrt((expectedShare * (1 - expectedShare)) / requests);
  const allowed = ALLOWED_DEVIATIONS * deviation + TICK_SLACK;
  if (Math.abs(measured - expectedShare) <= allowed) return undefined;
  return `${formatPercent(measured)} of the requests timed out; ${formatPercent(expectedShare)} ± ${formatPercent(allowed)} were expected`;
}
