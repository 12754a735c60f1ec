import { EscapementError, SystemTimer } from 'escapement';
import type { LeaseHolder, LeasedTask } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { describe, expect, it, vi } from 'vitest';
import { LeaseKeeper } from '../../../src/tasks/server/lease-keeper.ts';
import { silentLogger } from '../../../src/tasks/server/logger.ts';
import { RunTable } from '../../../src/tasks/server/run-table.ts';
import { TaskRun } from '../../../src/tasks/server/task-run.ts';

/** A run whose lease was over long ago, for all we know: nothing has come in time, as when the process was blocked. */
function blocked(
  extendLeases: () => Promise<readonly LeasedTask[]>,
  holder?: LeaseHolder,
): {
  clock: ManualClock;
  run: TaskRun;
  lost: TaskRun[];
} {
  const clock = new ManualClock({ nowMs: 100_000 });
  const broker = { clock, extendLeases } as never;
  const leased = { message: { timeoutMs: 0, deadlineMs: 0 } } as LeasedTask;
  const run = new TaskRun(leased, { nowMs: 0, wallNowMs: 0 }, { broker, leaseMs: 30_000, baseContext: null });
  const runs = new RunTable(1);
  const lost: TaskRun[] = [];
  const timer = new SystemTimer({ clock });
  runs.add(run);
  new LeaseKeeper({
    ...{ broker, timer, runs, leaseMs: 30_000, graceMs: 1_000, holder, logger: silentLogger },
    onLost: (one) => lost.push(one),
  }).watch([run]);
  return { clock, run, lost };
}

it('after the process was blocked for too long the broker is asked: the lease may still be ours', async () => {
  const { clock, run, lost } = blocked(() => Promise.resolve([]));
  await clock.advanceAsync(5_000);
  expect([lost, run.leaseUntilMs]).toEqual([[], 135_000]);
});

it('if it does not answer, it is lost', async () => {
  const refuse = vi.fn(() => Promise.reject(new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer')));
  const { clock, run, lost } = blocked(refuse);
  await clock.advanceAsync(5_000);
  expect(lost).toEqual([run]);
});

describe('with somebody who renews them while the loop is held', () => {
  function holder(renewedUntilMs: number): LeaseHolder {
    return {
      hold: vi.fn(),
      release: vi.fn(),
      renewedUntilMs: () => renewedUntilMs,
      close: () => Promise.resolve(),
    };
  }
  const refuse = (): Promise<never> =>
    Promise.reject(new EscapementError('ERR_BROKER_UNAVAILABLE', 'the answer came too late'));

  it('a lease that was renewed in time is not lost, if the broker does not answer', async () => {
    const { clock, lost } = blocked(refuse, holder(Number.MAX_SAFE_INTEGER));
    await clock.advanceAsync(5_000);
    expect(lost).toEqual([]);
  });

  it('it is lost if that is over, too', async () => {
    const { clock, run, lost } = blocked(refuse, holder(1));
    await clock.advanceAsync(5_000);
    expect(lost).toEqual([run]);
  });

  it('it is lost if the broker says so', async () => {
    const { clock, run, lost } = blocked(
      () => Promise.resolve([run.leased]),
      holder(Number.MAX_SAFE_INTEGER),
    );
    await clock.advanceAsync(5_000);
    expect(lost).toEqual([run]);
  });
});
