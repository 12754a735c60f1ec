export { Client } from './tasks/client.ts';
export type { ClientEvents, ClientMiddleware, ClientOptions, EnqueueRequest } from './tasks/client.ts';
export { parseCronSpec } from './tasks/cron-spec.ts';
export type { CronSpec } from './tasks/cron-spec.ts';
export { defineTask, TaskType } from './tasks/task-type.ts';
export type { TaskTypeOptions } from './tasks/task-type.ts';
export { PeriodicTaskManager } from './tasks/periodic-task-manager.ts';
export type {
  PeriodicTaskConfig,
  PeriodicTaskConfigProvider,
  PeriodicTaskManagerEvents,
  PeriodicTaskManagerOptions,
  SyncChange,
} from './tasks/periodic-task-manager.ts';
export { RevokeTask } from './tasks/revoke-task.ts';
export { Scheduler } from './tasks/scheduler.ts';
export type { SchedulerEvents } from './tasks/scheduler.ts';
export type { BackfillOptions } from './tasks/scheduler/backfill.ts';
export type {
  EnqueueErrorHandler,
  PostEnqueue,
  PreEnqueue,
  ScheduleOptions,
  SchedulerOptions,
  ScheduleTick,
} from './tasks/scheduler/scheduler-options.ts';
export { SkipRetry } from './tasks/skip-retry.ts';
export type { StandardSchema, StandardSchemaIssue, StandardSchemaResult } from './tasks/standard-schema.ts';
export { Task } from './tasks/task.ts';
export type { TaskInfo } from './tasks/task-info.ts';
export type { TaskOptions } from './tasks/task-options.ts';
export type { TaskMessage } from './tasks/task-message.ts';
export type { TaskState } from './tasks/task-state.ts';
export type * from './tasks/broker/broker.ts';
export { EmbeddedBroker } from './tasks/broker/embedded/embedded-broker.ts';
export type { EmbeddedBrokerOptions } from './tasks/broker/embedded/embedded-broker-options.ts';
