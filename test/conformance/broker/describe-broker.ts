import { describe } from 'vitest';
import { describeAdministration } from './administration.ts';
import { describeAggregation } from './aggregation.ts';
import { describeClosing } from './closing.ts';
import { describeDuplicates } from './duplicates.ts';
import { describeForwarding } from './forwarding.ts';
import { describeKeys } from './keys.ts';
import { describeLimits } from './limits.ts';
import { describeHeldTasks } from './held-tasks.ts';
import { describeNotifications } from './notifications.ts';
import { describeInspecting } from './inspecting.ts';
import { describeMembers } from './members.ts';
import { describeProcessing } from './processing.ts';
import type { BrokerFactory } from './support.ts';
import { describeWriting } from './writing.ts';

/** In the order of the banners of broker.ts. */
const PARTS: Readonly<Record<string, (make: BrokerFactory) => void>> = {
  writing: describeWriting,
  duplicates: describeDuplicates,
  processing: describeProcessing,
  keys: describeKeys,
  limits: describeLimits,
  'tasks that are held back': describeHeldTasks,
  'forwarding and recovering': describeForwarding,
  aggregation: describeAggregation,
  'notifications and cancellation': describeNotifications,
  'servers and schedulers': describeMembers,
  inspecting: describeInspecting,
  administration: describeAdministration,
  closing: describeClosing,
};

/** What every broker does. */
export function describeBroker(make: BrokerFactory): void {
  for (const [name, describePart] of Object.entries(PARTS)) {
    describe(name, () => {
      describePart(make);
    });
  }
}
