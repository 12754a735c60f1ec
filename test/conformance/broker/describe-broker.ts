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

/** What every broker does, in the order of the banners of broker.ts. */
export function describeBroker(make: BrokerFactory): void {
  describe('writing', () => {
    describeWriting(make);
  });
  describe('duplicates', () => {
    describeDuplicates(make);
  });
  describe('processing', () => {
    describeProcessing(make);
  });
  describe('keys', () => {
    describeKeys(make);
  });
  describe('limits', () => {
    describeLimits(make);
  });
  describe('tasks that are held back', () => {
    describeHeldTasks(make);
  });
  describe('forwarding and recovering', () => {
    describeForwarding(make);
  });
  describe('aggregation', () => {
    describeAggregation(make);
  });
  describe('notifications and cancellation', () => {
    describeNotifications(make);
  });
  describe('servers and schedulers', () => {
    describeMembers(make);
  });
  describe('inspecting', () => {
    describeInspecting(make);
  });
  describe('administration', () => {
    describeAdministration(make);
  });
  describe('closing', () => {
    describeClosing(make);
  });
}
