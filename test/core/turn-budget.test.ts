import { describe, expect, test } from 'vitest';
import { TurnBudget } from '../../src/core/own-turn.ts';

describe('TurnBudget', () => {
  const piecesOf = (budget: TurnBudget): number => {
    let pieces = 1;
    while (!budget.spend()) pieces++;
    return pieces;
  };

  test('is spent after a thousand pieces, until the host has had a turn', async () => {
    const budget = new TurnBudget();
    expect(piecesOf(budget)).toBe(1_000);
    expect([budget.spend(), budget.spend()]).toEqual([true, true]);
    await budget.next();
    expect(piecesOf(budget)).toBe(1_000);
  });

  test('that turn is one of the event loop: what the host has ready comes first', async () => {
    const log: string[] = [];
    setImmediate(() => log.push('immediate'));
    await new TurnBudget().next();
    expect(log).toEqual(['immediate']);
  });

  test('several who share it all wait, and it is whole again', async () => {
    const budget = new TurnBudget();
    piecesOf(budget);
    await Promise.all([budget.next(), budget.next()]);
    expect(piecesOf(budget)).toBe(1_000);
  });
});
