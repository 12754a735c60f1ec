import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SingleFlight } from '../../src/purgatory/async-delayed-operation.ts';

/** Longest chain of promise jobs from the end of a check to the start of the next. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
}

interface Check {
  readonly land: (answer: string) => void;
  readonly crash: (error: Error) => void;
}

/** A flight whose checks are ended by hand, and everything that happened. */
class Airport {
  readonly log: string[] = [];
  readonly inFlight: Check[] = [];
  started = 0;
  isWanted = true;
  readonly flight = new SingleFlight<string, string>({
    startCheck: () => {
      this.log.push(`start ${++this.started}`);
      return new Promise<string>((land, crash) => {
        this.inFlight.push({ land, crash });
      });
    },
    takeAnswer: (answer, context) => this.log.push(`${answer} for ${context}`),
    checkFailed: (error, context) => this.log.push(`${String(error)} for ${context}`),
    isStillWanted: () => this.isWanted,
  });

  async land(answer: string): Promise<void> {
    this.inFlight.shift()?.land(answer);
    await settle();
  }
}

describe('a single flight', () => {
  test('an answer is for whom the check was started, the next check for who triggered last', async () => {
    const airport = new Airport();
    for (const context of ['a', 'b', 'c']) airport.flight.trigger(context);
    await airport.land('no');
    await airport.land('yes');
    expect(airport.log).toEqual(['start 1', 'no for a', 'start 2', 'yes for c']);
  });

  test('nothing follows that nobody wants any more', async () => {
    const airport = new Airport();
    for (const context of ['a', 'b']) airport.flight.trigger(context);
    airport.isWanted = false;
    await airport.land('no');
    expect(airport.log).toEqual(['start 1', 'no for a']);
    airport.flight.trigger('d');
    expect(airport.started).toBe(2);
  });

  test('whatever comes: one in flight at most, each trigger is followed by a start, each start by its end', async () => {
    const event = fc.constantFrom('trigger', 'trigger', 'land', 'crash', 'turn');
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 30 }), async (events) => {
        const airport = new Airport();
        let startedAtTrigger = -1;
        const last = ['turn', 'land', 'turn', 'land', 'turn'];
        for (const what of [...events, ...last]) {
          if (what === 'trigger') {
            startedAtTrigger = airport.started;
            airport.flight.trigger('a');
          } else if (what === 'crash') airport.inFlight.shift()?.crash(new Error('crash'));
          else if (what === 'land') airport.inFlight.shift()?.land('no');
          // Without it the next event comes before anybody has heard of the last.
          else await settle();
          expect(airport.inFlight.length).toBeLessThanOrEqual(1);
        }
        expect(airport.started).toBeGreaterThan(startedAtTrigger);
        expect(airport.inFlight).toEqual([]);
        expect(airport.log.filter((line) => line.endsWith(' for a'))).toHaveLength(airport.started);
      }),
      { numRuns: 200 },
    );
  });
});
