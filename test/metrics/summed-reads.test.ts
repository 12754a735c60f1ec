import { describe, expect, it, vi } from 'vitest';
import type { EscapementError } from 'escapement';
import { SummedReads, type Labels } from '../../src/metrics/summed-reads.ts';

const silent = (): void => undefined;

function reader(value: unknown, onError: (error: EscapementError) => void = silent): never {
  return { read: () => value, onError } as never;
}

function report(reads: SummedReads): [Labels, number][] {
  const seen: [Labels, number][] = [];
  reads.report((labels, sum) => seen.push([labels, sum]));
  return seen;
}

describe('SummedReads', () => {
  it('adds up what goes by equal labels, in whatever order they are given', () => {
    const reads = new SummedReads('m', false);
    reads.add({ a: '1', b: '2' }, reader(3));
    reads.add({ b: '2', a: '1' }, reader(4));
    reads.add({ a: '1' }, reader(5));
    expect(report(reads)).toEqual([
      [{ a: '1', b: '2' }, 7],
      [{ a: '1' }, 5],
    ]);
  });

  it('does not take labels for equal because a value looks like a separator', () => {
    const reads = new SummedReads('m', false);
    reads.add({ a: 'x","b:y', b: 'z' }, reader(1));
    reads.add({ a: 'x', b: 'y","b:z' }, reader(2));
    expect(report(reads).map(([, sum]) => sum)).toEqual([1, 2]);
  });

  it('forgets a series with its last reader, and removing twice changes nothing', () => {
    const reads = new SummedReads('m', false);
    const removeFirst = reads.add({}, reader(1));
    const removeSecond = reads.add({}, reader(2));
    removeFirst();
    removeFirst();
    expect(report(reads)).toEqual([[{}, 2]]);
    removeSecond();
    expect(report(reads)).toEqual([]);
    reads.add({}, reader(4));
    removeSecond();
    expect(report(reads)).toEqual([[{}, 4]]);
  });

  it('ends a series at 0, once, if that is asked for and it was ever reported', () => {
    const reads = new SummedReads('m', true);
    reads.add({ name: 'unseen' }, reader(1))();
    const remove = reads.add({ name: 'seen' }, reader(1));
    report(reads);
    remove();
    expect(report(reads)).toEqual([[{ name: 'seen' }, 0]]);
    expect(report(reads)).toEqual([]);
  });

  it('does not end at 0 what was made again in between', () => {
    const reads = new SummedReads('m', true);
    const remove = reads.add({}, reader(1));
    report(reads);
    remove();
    reads.add({}, reader(5));
    expect(report(reads)).toEqual([[{}, 5]]);
  });

  it('lets a reader take itself away while it is read', () => {
    const reads = new SummedReads('m', true);
    const remove = reads.add({}, { read: () => (remove(), 3), onError: silent });
    expect([report(reads), report(reads), report(reads)]).toEqual([[[{}, 3]], [[{}, 0]], []]);
  });

  it('lets a reader add series: they are in the next report', () => {
    const reads = new SummedReads('m', false);
    let made = 0;
    const read = (): number => {
      reads.add({ made: String(++made) }, { read, onError: silent });
      return 1;
    };
    reads.add({}, { read, onError: silent });
    expect([report(reads).length, report(reads).length]).toEqual([1, 2]);
  });

  it('leaves out a series of which a reader throws, says which, and reads the others', () => {
    const onError = vi.fn<(error: EscapementError) => void>();
    const cause = new Error('gone');
    const reads = new SummedReads('depth', false);
    const fail = (): number => {
      throw cause;
    };
    reads.add({ name: 'a "b"' }, { read: fail, onError });
    reads.add({ name: 'a "b"' }, reader(1));
    reads.add({ name: 'c' }, reader(2));
    expect(report(reads)).toEqual([[{ name: 'c' }, 2]]);
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        code: 'ERR_METRIC_READ',
        message: 'depth{name="a \\"b\\""} could not be read: gone',
        cause,
      }),
    );
  });

  it.each([undefined, '7', 7n, null, Promise.resolve(7)])('takes %s for no number', (value) => {
    const onError = vi.fn<(error: EscapementError) => void>();
    const reads = new SummedReads('depth', false);
    reads.add({}, reader(value, onError));
    expect(report(reads)).toEqual([]);
    expect(onError.mock.calls[0]?.[0].message).toMatch(/^depth\{\} could not be read: a number was expected/);
  });
});
