export { Client } from './tasks/client.ts';
export type { ClientEvents, ClientMiddleware, ClientOptions, EnqueueRequest } from './tasks/client.ts';
export { defineTask, TaskType } from './tasks/task-type.ts';
export type { TaskTypeOptions } from './tasks/task-type.ts';
export { Inspector } from './tasks/inspector.ts';
export type { CancelOptions, InspectorOptions, WaitForOptions } from './tasks/inspector.ts';
export type {
  DailyStats,
  QueueInfo,
  SchedulerEnqueueEvent,
  SchedulerEntryInfo,
  ServerInfo,
  WorkerInfo,
} from './tasks/inspector-info.ts';
export type { ListOptions } from './tasks/list-options.ts';
export { RevokeTask } from './tasks/revoke-task.ts';
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
