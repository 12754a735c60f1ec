import { describe, expect, test } from 'vitest';
import { Fixture } from './support/fixture.ts';

describe('operations of a key are checked in the order they were watched', () => {
  test('also those that stay, and each once', () => {
    const fixture = new Fixture();
    const tried: string[] = [];
    const onTry = ({ name }: { name: string }): unknown => tried.push(name);
    for (const name of ['a', 'b', 'c', 'd']) fixture.watch(name, name === 'c' ? 'yx' : 'xy', { onTry });
    fixture.watch('other', 'z', { onTry });
    tried.length = 0;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(tried).toEqual(['a', 'b', 'c', 'd']);
  });

  test('some complete: the number of those is returned', () => {
    const fixture = new Fixture();
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      fixture.watch(name, 'x').holds = name !== 'b' && name !== 'd';
    }
    expect(fixture.purgatory.checkAndComplete('x')).toBe(3);
    expect(fixture.log).toEqual(['a tried', 'c tried', 'e tried']);
    expect(fixture.gauges()).toEqual([2, 0, 1, 0]);
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.purgatory.checkAndComplete('nobody')).toBe(0);
  });

  test('one that was watched anew stands behind the others', () => {
    const fixture = new Fixture();
    const a = fixture.watch('a', 'xy');
    const b = fixture.watch('b', 'x');
    fixture.purgatory.cancelForKey('y');
    fixture.purgatory.tryCompleteElseWatch(a, ['x']);
    a.holds = b.holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
    expect(fixture.log).toEqual(['b tried', 'a tried']);
  });

  test('one that is watched during the check is not part of it', () => {
    const fixture = new Fixture();
    fixture.watch('a', 'x', { onComplete: () => fixture.watch('c', 'x') }).holds = true;
    fixture.watch('b', 'x').holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
    const [c] = fixture.purgatory.cancelForKey('x');
    expect(c).toMatchObject({ name: 'c', tries: 2 });
  });

  test('also when it was there before, and was taken out and watched anew during the check', () => {
    const fixture = new Fixture();
    const b = fixture.operation('b');
    fixture.watch('a', 'x', {
      onTry: ({ tries }) => {
        if (tries !== 3) return;
        fixture.purgatory.cancelForKey('y');
        fixture.purgatory.tryCompleteElseWatch(b, ['y', 'x']);
      },
    });
    fixture.purgatory.tryCompleteElseWatch(b, ['y', 'x']);
    const c = fixture.watch('c', 'x');
    fixture.purgatory.checkAndComplete('x');
    expect([b.tries, c.tries]).toEqual([4, 3]);
  });

  test('one that is forced or expires during the check is not checked any more', () => {
    const fixture = new Fixture();
    const forced = fixture.operation('forced');
    fixture.watch('a', 'x', {
      onTry: ({ tries }) => {
        if (tries !== 3) return;
        forced.forceComplete();
        fixture.clock.advance(10);
      },
    });
    fixture.purgatory.tryCompleteElseWatch(forced, ['x']);
    const expired = fixture.watch('expired', 'x', { delayMs: 10 });
    const last = fixture.watch('last', 'x');
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect([forced.tries, expired.tries, last.tries]).toEqual([2, 2, 3]);
    expect(fixture.gauges()).toEqual([2, 0, 1, 0]);
  });
});

describe('a key given twice in one call is one watch entry', () => {
  test('and one try for each trigger', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'xyxxy', { delayMs: 10 });
    expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
    fixture.purgatory.checkAndComplete('x');
    expect(operation.tries).toBe(3);
    expect(fixture.purgatory.cancelForKey('y')).toEqual([operation]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });
});
