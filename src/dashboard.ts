/**
 * Queues, tasks, timers and wheels, live in a browser.
 *
 * @module escapement/dashboard
 */
export { dashboard } from './dashboard/dashboard.ts';
export type { Dashboard } from './dashboard/dashboard.ts';
export type { Access, DashboardOptions, DashboardRequest } from './dashboard/dashboard-options.ts';
export type { DashboardAction } from './dashboard/dashboard-json.ts';
export type {
  DiskQueueShown,
  PurgatoryShown,
  TimerShown,
  WorkQueueShown,
} from './dashboard/runtime-parts.ts';
