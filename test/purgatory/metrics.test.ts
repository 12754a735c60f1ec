import { AsyncDelayedOperation, ManualClock } from 'escapement';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { uncaughtErrors } from '../uncaught-errors.ts';
import { settled } from '../workqueue/support/outcome.ts';
import { expect, test } from 'vitest';
import { Fixture } from './support/fixture.ts';

function measured(): { fixture: Fixture; metrics: RecordingMetrics; clock: ManualClock } {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock({ nowMs: 5_000 });
  return { fixture: new Fixture({ metrics, clock }, clock), metrics, clock };
}

test('every metric has the name of the purgatory as a label', () => {
  const { metrics } = measured();
  expect(metrics.labels.length).toBeGreaterThanOrEqual(9);
  for (const labels of metrics.labels) expect(labels['purgatory']).toBe('test');
});

test('the gauges are read when metrics are collected, until the purgatory is closed', () => {
  const { fixture, metrics } = measured();
  fixture.watch('a', 'xyz', { delayMs: 10 });
  fixture.watch('b', 'x');
  const gauges = { purgatory_size: 4, purgatory_num_delayed_operations: 1, purgatory_watched_keys: 3 };
  expect(metrics.gauges()).toEqual(gauges);
  fixture.purgatory.close();
  expect(metrics.readers.size).toBe(0);
});

test('completed operations are counted by reason, and cancelled ones', () => {
  const { fixture, metrics, clock } = measured();
  fixture.watch('at once', 'x', { holds: true });
  fixture.watch('checked', 'x').holds = true;
  fixture.purgatory.checkAndComplete('x');
  fixture.watch('forced', 'x').forceComplete();
  fixture.watch('expired', 'xyz', { delayMs: 10 });
  clock.advance(10);
  for (const name of ['cancelled', 'too']) fixture.watch(name, 'xyz');
  fixture.purgatory.cancelForKey('y');
  for (const name of ['closed', 'too', 'and too']) fixture.watch(name, 'xyz');
  fixture.purgatory.close();
  expect(Object.fromEntries(metrics.counts)).toEqual({
    'purgatory_completed_total tried': 2,
    'purgatory_completed_total forced': 1,
    'purgatory_completed_total expired': 1,
    'purgatory_completed_total closed': 3,
    purgatory_cancelled_total: 2,
    purgatory_missed_triggers_total: 0,
  });
});

test('the time from addition to completion is measured in seconds', () => {
  const { fixture, metrics, clock } = measured();
  fixture.watch('at once', 'x', { holds: true });
  const forced = fixture.watch('forced', 'x');
  fixture.watch('expired', 'x', { delayMs: 2_000 });
  clock.advance(1_500);
  forced.forceComplete();
  clock.advance(5_000);
  expect(metrics.observed.get('purgatory_wait_duration_seconds')).toEqual([0, 1.5, 2]);
});

test('the duration of the check of each key is measured in seconds', () => {
  const { fixture, metrics, clock } = measured();
  fixture.watch('a', 'x', {
    onTry: ({ tries }) => {
      if (tries !== 3) return;
      clock.advance(250);
      fixture.purgatory.checkAndComplete('y');
    },
  });
  fixture.watch('b', 'y', {
    onTry: ({ tries }) => {
      if (tries === 3) clock.advance(30);
    },
  });
  fixture.purgatory.checkAndComplete('x');
  expect(metrics.observed.get('purgatory_check_duration_seconds')).toEqual([0.25, 0.03]);
});

test('the buckets of both histograms ascend', () => {
  const { metrics } = measured();
  expect(metrics.buckets.size).toBe(2);
  for (const bounds of metrics.buckets.values()) expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
});

const MISSED = 'purgatory_missed_triggers_total';

test('an expired operation is a missed trigger if its condition held, and onComplete receives expired', () => {
  const { fixture, metrics, clock } = measured();
  const missed = fixture.watch('missed', 'x', { delayMs: 10 });
  fixture.watch('late', 'x', { delayMs: 10 });
  missed.holds = true;
  clock.advance(10);
  expect(metrics.counts.get(MISSED)).toBe(1);
  expect(metrics.counts.get('purgatory_completed_total expired')).toBe(2);
  expect(metrics.counts.get('purgatory_completed_total tried')).toBe(0);
  expect(fixture.log).toEqual(['missed expired', 'missed onExpiration', 'late expired', 'late onExpiration']);
  expect(missed.tries).toBe(3);
});

test('an operation whose condition throws at expiry is reported, and expires', () => {
  const { fixture, metrics, clock } = measured();
  const mine = new Error('mine');
  const operation = fixture.watch('a', 'x', {
    delayMs: 10,
    onTry: ({ tries }) => {
      if (tries === 3) throw mine;
    },
  });
  clock.advance(10);
  expect(fixture.errors).toEqual([[mine, operation]]);
  expect(metrics.counts.get(MISSED)).toBe(0);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
});

test('an operation that triggers its key during the check at expiry is not checked again', () => {
  const { fixture, clock } = measured();
  const operation = fixture.watch('a', 'x', {
    delayMs: 10,
    onTry: ({ tries }) => tries === 3 && fixture.purgatory.checkAndComplete('x'),
  });
  clock.advance(10);
  expect([operation.tries, fixture.log]).toEqual([3, ['a expired', 'a onExpiration']]);
});

test.each(['cancelForKey', 'close with drop'])(
  'an operation that is removed during the check at expiry, by %s, never completes',
  (how) => {
    const { fixture, clock } = measured();
    const { purgatory } = fixture;
    const operation = fixture.watch('a', 'x', {
      delayMs: 10,
      onTry: (self) => {
        if (self.tries !== 3) return;
        const taken =
          how === 'cancelForKey' ? purgatory.cancelForKey('x') : purgatory.close({ pending: 'drop' });
        expect(taken).toEqual([self]);
      },
    });
    clock.advance(10);
    expect([operation.isCompleted, fixture.log]).toEqual([false, []]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('an operation that closes the purgatory during the check at expiry is closed, and no trigger was missed', () => {
  const { fixture, metrics, clock } = measured();
  const operation = fixture.watch('a', 'x', {
    delayMs: 10,
    onTry: (self) => {
      if (self.tries !== 3) return;
      expect(fixture.purgatory.close()).toEqual([self]);
      expect(self.isCompleted).toBe(true);
    },
  });
  clock.advance(10);
  expect(fixture.errors).toEqual([]);
  expect([operation.isCompleted, fixture.log, metrics.counts.get(MISSED)]).toEqual([true, ['a closed'], 0]);
});

test('a wait whose condition holds at its timeout rejects all the same', async () => {
  const { fixture, metrics, clock } = measured();
  let value: string | undefined = undefined;
  const wait = fixture.purgatory.wait(['x'], () => value, { timeoutMs: 10 });
  value = 'too late';
  clock.advance(10);
  await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_EXPIRED');
  expect(metrics.counts.get(MISSED)).toBe(1);
});

test('a wait whose condition throws at its timeout has expired, and missed no trigger', async () => {
  const { fixture, metrics, clock } = measured();
  let looks = 0;
  const condition = (): undefined => {
    if (++looks === 3) throw new Error('mine');
  };
  const wait = fixture.purgatory.wait(['x'], condition, { timeoutMs: 10 });
  clock.advance(10);
  await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_EXPIRED');
  expect(metrics.counts.get(MISSED)).toBe(0);
});

test('no asynchronous check is started for an operation that expires', async () => {
  const { fixture, clock } = measured();
  let checks = 0;
  class Remote extends AsyncDelayedOperation {
    override tryCompleteAsync(): Promise<boolean> {
      checks++;
      return Promise.resolve(false);
    }

    override onComplete(): void {
      fixture.log.push('over');
    }

    override onExpiration(): void {
      expect(this.isCompleted).toBe(true);
    }
  }
  fixture.purgatory.tryCompleteElseWatch(new Remote(10), ['x']);
  await clock.advanceAsync(5);
  expect(checks).toBe(2);
  await clock.advanceAsync(5);
  expect([checks, fixture.log]).toEqual([2, ['over']]);
});

test('an error of a metrics provider stops no completion', async () => {
  const uncaught = uncaughtErrors();
  const { fixture, metrics } = measured();
  const operation = fixture.watch('a', 'x');
  metrics.broken.add('purgatory_wait_duration_seconds');
  expect(operation.forceComplete()).toBe(true);
  expect([fixture.log, fixture.purgatory.watched]).toEqual([['a forced'], 0]);
  await settled();
  expect(uncaught).toMatchObject([{ message: 'purgatory_wait_duration_seconds is broken' }]);
});
