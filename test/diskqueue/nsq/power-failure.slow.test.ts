import { describe, expect, it } from 'vitest';
import { CrashDisk, type PowerFailure } from './crash-disk.ts';
import { checkLeft, runScenario, Scenario, type Told } from './scenario.ts';

interface Left {
  readonly at: string;
  readonly disk: CrashDisk;
  readonly told: readonly Told[];
}

/** What each call of the scenario would leave, if it were the one that the power fails in. */
async function leftByEachCall(isAlwaysDurable: boolean, failures: readonly PowerFailure[]): Promise<Left[]> {
  const disk = new CrashDisk();
  const scenario = new Scenario(disk, isAlwaysDurable);
  const all: Left[] = [];
  disk.fault = (call, name) => {
    for (const failure of failures) {
      const at = `call ${call}, ${name}, ${failure.bytes} ${failure.part}`;
      all.push({ at, disk: disk.afterPowerFailure(failure), told: structuredClone(scenario.told) });
    }
    return undefined;
  };
  await runScenario(scenario);
  expect(scenario.errors).toEqual([]);
  return all;
}

const PARTS = [0, 0.1, 0.34, 0.5, 0.77, 0.9, 1];

describe.each([true, false])('always durable: %s', (isAlwaysDurable) => {
  it('the process is killed in any call: what is with the host is there', async () => {
    for (const { at, disk, told } of await leftByEachCall(isAlwaysDurable, [{ bytes: 'all', part: 1 }])) {
      const result = await checkLeft(disk, isAlwaysDurable, told, { refused: true, lostWritten: false });
      expect(`${at}: ${result ?? 'well'}`).toBe(`${at}: well`);
    }
  });

  it.each(['none', 'some', 'all'] as const)(
    'the power fails in any call, and %s of what was not synced is there: what is durable is there',
    async (bytes) => {
      const failures = PARTS.map((part) => ({ bytes, part }));
      for (const { at, disk, told } of await leftByEachCall(isAlwaysDurable, failures)) {
        const result = await checkLeft(disk, isAlwaysDurable, told, { refused: true, lostWritten: true });
        expect(`${at}: ${result ?? 'well'}`).toBe(`${at}: well`);
      }
    },
  );

  it('the power fails in any call, and what was not synced is zeros: what is durable is there', async () => {
    const failures = [{ bytes: 'zeros', part: 0 } as const];
    for (const { at, disk, told } of await leftByEachCall(isAlwaysDurable, failures)) {
      const result = await checkLeft(disk, isAlwaysDurable, told, { refused: true, lostWritten: true });
      expect(`${at}: ${result ?? 'well'}`).toBe(`${at}: well`);
    }
  });
});
