import { RECORD_CHECKS } from './check-records.ts';
import type { ExampleResult, ProcessFate } from './example-result.ts';

/** What a run promised and did not keep; empty if all is well. */
export function selfCheck(result: ExampleResult): string[] {
  return [...RECORD_CHECKS, nothingFailed, countsAgree, nothingWaits, noTriggerMissed, outageHappened]
    .map((check) => check(result))
    .filter((complaint) => complaint !== undefined);
}

/** Whatever was started must be gone, and only the victim by force. */
export function checkProcesses(fates: readonly ProcessFate[]): string[] {
  const running = fates.filter(({ isRunning }) => isRunning);
  const unwell = fates.filter(({ end }) => end.code !== 0 && end.signal !== 'SIGKILL');
  const killed = fates.filter(({ end }) => end.signal === 'SIGKILL');
  return [
    ...running.map(({ name, pid }) => `${name} (pid ${pid}) still runs`),
    ...unwell.map(({ name, end }) => `${name} ended with ${end.signal ?? `exit code ${String(end.code)}`}`),
    ...killed.slice(1).map(({ name }) => `${name} had to be killed`),
  ];
}

function nothingFailed({ counts, afterwards }: ExampleResult): string | undefined {
  const [error] = afterwards.errors;
  if (error !== undefined) return `an operation in the leader threw: ${error}`;
  return counts.failed === 0 ? undefined : `${counts.failed} produces failed in a way that none may`;
}

/** Each produce that waits completes once. The leader counts completions, the clients answers. */
function countsAgree({ counts, afterwards }: ExampleResult): string | undefined {
  const { tried, forced, expired, closed } = afterwards.purgatories.produce.completed;
  if (expired !== counts.timedOut)
    return `${expired} produces expired in the leader, ${counts.timedOut} in the eyes of the clients`;
  const [least, most] = [counts.sentAll - counts.refused, counts.sentAll];
  const completed = tried + forced + expired + closed;
  if (completed >= least && completed <= most) return undefined;
  return `${completed} produces completed in the leader; the clients sent ${counts.sentAll}, and ${counts.refused} were refused`;
}

function nothingWaits({ afterwards }: ExampleResult): string | undefined {
  for (const [name, { watched, numDelayed, watchedKeys }] of Object.entries(afterwards.purgatories)) {
    if (watched + numDelayed + watchedKeys > 0)
      return `left in purgatory ${name}: watched ${watched}, delayed ${numDelayed}, keys ${watchedKeys}`;
  }
  return undefined;
}

function noTriggerMissed({ afterwards }: ExampleResult): string | undefined {
  const missed = Object.entries(afterwards.purgatories).find(([, { missedTriggers }]) => missedTriggers > 0);
  return (
    missed &&
    `${missed[1].missedTriggers} operations of purgatory ${missed[0]} expired although they were due`
  );
}

function outageHappened({ outage, afterwards }: ExampleResult): string | undefined {
  if (outage.end.signal !== 'SIGKILL') return `${outage.member} was not killed by SIGKILL`;
  return afterwards.purgatories.sessions.completed.expired > 0 ? undefined : 'no session expired';
}
