import fc from 'fast-check';
import { testProperty } from '../runs.ts';
import { history, maxArchived } from './broker-actions.ts';
import { openEmbeddedSide } from './broker-side.ts';
import { BrokerWorld } from './broker-world.ts';
import { scenario as purgatoryScenario } from './purgatory-actions.ts';
import { PurgatoryWorld } from './purgatory-world.ts';
import { scenario as timerScenario } from './timer-actions.ts';
import { TimerWorld } from './timer-world.ts';
import { scenario as queueScenario } from './workqueue-actions.ts';
import { WorkQueueWorld } from './workqueue-world.ts';

testProperty(
  'two timers behave like sorted lists, whatever is done to them from outside and from inside tasks',
  fc.asyncProperty(timerScenario, (scenario) => new TimerWorld(scenario).run()),
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
