import fc from 'fast-check';
import { testProperty } from '../runs.ts';
import { history, maxArchived } from './broker-actions.ts';
import { openCopiedSide, openDurableSide, openEmbeddedSide } from './broker-side.ts';
import { BrokerWorld } from './broker-world.ts';
import { scenario as purgatoryScenario } from './purgatory-actions.ts';
import { PurgatoryWorld } from './purgatory-world.ts';
import { scenario as timerScenario, type Scenario } from './timer-actions.ts';
import { TimerWorld } from './timer-world.ts';
import { scenario as queueScenario } from './workqueue-actions.ts';
import { WorkQueueWorld } from './workqueue-world.ts';

const plain = { rounding: 'up', autoStart: true, maxTasksPerTurn: 1, movesPerTurn: 1 } as const;
const quiet = [[], [], [], [], [], [], [], []] as const;

/** Histories in which an entry overtook another one, or the model was wrong. */
const timerExamples: [Scenario][] = [
  [
    {
      ...{ startMs: 0, idleMs: 0, scripts: quiet },
      setups: [
        { ...plain, tickMs: 1, wheelSize: 2, executorKind: 'none' },
        { ...plain, tickMs: 10, wheelSize: 2, executorKind: 'none', autoStart: false, movesPerTurn: 2 },
      ],
      steps: [
        { kind: 'add', on: 0, delay: 0, script: 0, isAbsolute: false },
        { kind: 'add', on: 0, delay: 0, script: 0, isAbsolute: false },
        { kind: 'pass', ms: 855 },
        { kind: 'schedule', on: 1, delay: 1, script: 0, isAbsolute: false },
        { kind: 'move', pick: 0, on: 1, delay: 6, isAbsolute: true },
        { kind: 'pass', ms: 25 },
        { kind: 'add', on: 0, delay: 1, script: 0, isAbsolute: false },
        { kind: 'move', pick: 3, on: 1, delay: 0, isAbsolute: true },
        { kind: 'add', on: 1, delay: 0, script: 0, isAbsolute: false },
        { kind: 'move', pick: 1, on: 1, delay: -Number.MAX_VALUE, isAbsolute: true },
      ],
    },
  ],
  [
    {
      ...{ startMs: 0, idleMs: 0 },
      setups: [
        { ...plain, tickMs: 1, wheelSize: 6, executorKind: 'none' },
        { ...plain, tickMs: 1, wheelSize: 2, executorKind: 'none' },
      ],
      scripts: [
        ...[[], [], [], []],
        [{ kind: 'schedule', on: 1, delay: { level: 1, deltaMs: -1 }, script: 0, isAbsolute: true }],
        ...[[], [], []],
      ],
      steps: [
        { kind: 'add', on: 0, delay: 7, script: 4, isAbsolute: false },
        { kind: 'add', on: 1, delay: 0, script: 0, isAbsolute: false },
        { kind: 'next', on: 0 },
        { kind: 'pass', ms: 6 },
        { kind: 'fire', on: 0 },
        { kind: 'move', pick: 2, on: 0, delay: 0, isAbsolute: false },
        { kind: 'move', pick: 0, on: 1, delay: -1, isAbsolute: true },
      ],
    },
  ],
];

testProperty(
  'two timers behave like sorted lists, whatever is done to them from outside and from inside tasks',
  fc.asyncProperty(timerScenario, (scenario) => new TimerWorld(scenario).run()),
  undefined,
  { examples: timerExamples },
);

testProperty(
  'two purgatories behave like maps of arrays, whatever is done to them from outside and from inside operations',
  fc.asyncProperty(purgatoryScenario, (scenario) => new PurgatoryWorld(scenario).run()),
);

testProperty(
  'a work queue behaves like arrays and maps, whatever is done to it',
  fc.asyncProperty(queueScenario, (scenario) => new WorkQueueWorld(scenario).run()),
);

testProperty(
  'the embedded broker behaves like arrays that are searched, whatever is done to it',
  fc.asyncProperty(maxArchived, history, (max, actions) => BrokerWorld.run(openEmbeddedSide, max, actions)),
);

testProperty(
  'the embedded broker with a folder behaves like arrays, although it is killed and opened again',
  fc.asyncProperty(maxArchived, history, (max, actions) => BrokerWorld.run(openDurableSide, max, actions)),
  150,
);

testProperty(
  'a copy of the embedded broker behaves like the original, whatever was done to that',
  fc.asyncProperty(maxArchived, history, (max, actions) => BrokerWorld.run(openCopiedSide, max, actions)),
  100,
);
