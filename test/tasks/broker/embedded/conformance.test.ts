import { EmbeddedBroker, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { describe } from 'vitest';
import { describeBroker } from '../../../conformance/broker/describe-broker.ts';
import type { BrokerSetup } from '../../../conformance/broker/support.ts';
import { folderOfTest } from '../../../folder.ts';

/** 2026-11-21, in the middle of the day. */
const START_WALL_MS = 1_795_262_400_000;

async function make(options: EmbeddedBrokerOptions = {}): Promise<BrokerSetup> {
  const clock = new ManualClock({ nowMs: 5_000, wallMs: START_WALL_MS });
  const broker = await EmbeddedBroker.open({ clock, ...options });
  return {
    broker,
    precisionMs: 1,
    advance: (ms) => clock.advanceAsync(ms),
    check: async () => {
      checkBroker(broker);
      if (broker.dataPath !== undefined) await checkBrokerLog(broker);
    },
    dispose: () => broker.close(),
  };
}

/** With a folder: compacted often, because its files are small. */
function makeDurable(): Promise<BrokerSetup> {
  return make({ dataPath: folderOfTest(), durability: 'os', maxBytesPerFile: 4_096 });
}

describe('the embedded broker', () => {
  describeBroker(make);
});

describe('the embedded broker with a folder', () => {
  describeBroker(makeDurable);
});
