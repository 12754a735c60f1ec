import { EscapementError, SystemTimer } from 'escapement';
import type { LeaseHolder, LeasedTask } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { describe, expect, it, vi } from 'vitest';
import { LeaseKeeper } from '../../../src/tasks/server/leases.ts';
import { silentLogger } from '../../../src/tasks/reporting.ts';
import { RunTable, TaskRun } from '../../../src/tasks/server/run.ts';

/** A run whose lease ended long ago, as far as is known here: no reply has come in time, as when the process was blocked. */
function blocked(
  extendLeases: () => Promise<readonly LeasedTask[]>,
  holder?: LeaseHolder,
): { clock: ManualClock; run: TaskRun } {
  const clock = new ManualClock({ nowMs: 100_000 });
  const timer = new SystemTimer({ clock });
  const broker = { clock, extendLeases, leaseHolder: () => holder };
  const options = { broker, leaseMs: 30_000, graceMs: 1_000, logger: silentLogger, baseContext: null };
  const leased = { message: { timeoutMs: 0, deadlineMs: 0 } } as LeasedTask;
  const run = new TaskRun(leased, { nowMs: 0, wallNowMs: 0 }, { options, timer } as never);
  const runs = new RunTable(1, { wake: vi.fn() });
  runs.add(run);
  new LeaseKeeper(options as never, timer, runs).watch([run]);
  return { clock, run };
}

it('after the process was blocked for longer than a lease, the broker decides whether it is lost', async () => {
  const { clock, run } = blocked(() => Promise.resolve([]));
  await clock.advanceAsync(5_000);
  expect([run.isLeaseLost, run.leaseUntilMs]).toEqual([false, 135_000]);
});

it('a lease that has ended is lost if the broker does not answer', async () => {
  const refuse = vi.fn(() => Promise.reject(new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer')));
  const { clock, run } = blocked(refuse);
  await clock.advanceAsync(5_000);
  expect(run.isLeaseLost).toBe(true);
});

describe('with a lease holder', () => {
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

  it('a lease that its holder has renewed is not lost if the broker does not answer', async () => {
    const { clock, run } = blocked(refuse, holder(Number.MAX_SAFE_INTEGER));
    await clock.advanceAsync(5_000);
    expect(run.isLeaseLost).toBe(false);
  });

  it('a lease is lost if the renewal of its holder has ended too', async () => {
    const { clock, run } = blocked(refuse, holder(1));
    await clock.advanceAsync(5_000);
    expect(run.isLeaseLost).toBe(true);
  });

  it('a lease is lost if the broker returns it as lost', async () => {
    const { clock, run } = blocked(() => Promise.resolve([run.leased]), holder(Number.MAX_SAFE_INTEGER));
    await clock.advanceAsync(5_000);
    expect(run.isLeaseLost).toBe(true);
  });
});
