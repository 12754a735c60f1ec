/**
 * Background jobs: clients, servers, schedulers, inspectors, and the embedded broker.
 *
 * @module escapement/tasks
 */
export { EscapementError } from './core/errors.ts';
export type { EscapementErrorCode } from './core/errors.ts';
export type * from './tasks/broker/broker.ts';
export { MAINTENANCE_JOBS } from './tasks/broker/broker-types.ts';
export type { BrokerSettings } from './tasks/broker/broker-settings.ts';
export type { CorruptionEvent, EmbeddedBrokerOptions } from './tasks/broker/embedded/embedded-broker.ts';
export { EmbeddedBroker } from './tasks/broker/embedded/embedded-broker.ts';
export { Client } from './tasks/client.ts';
export type { BrokerClientOptions, ClientEvents, ClientMiddleware, ClientOptions } from './tasks/client.ts';
export { copyTasks } from './tasks/copy-tasks.ts';
export type { CopiedTasks, CopyTasksOptions } from './tasks/copy-tasks.ts';
export { parseCronSpec } from './tasks/scheduler/cron-spec.ts';
export type { CronSpec } from './tasks/scheduler/cron-spec.ts';
export type {
  DailyStats,
  QueueInfo,
  SchedulerEnqueueEvent,
  SchedulerEntryInfo,
  ServerInfo,
  TaskInfo,
  WorkerInfo,
} from './tasks/info.ts';
export type { HttpClientOptions, RequestHeaders } from './tasks/http/http-sender.ts';
export { Inspector } from './tasks/inspector.ts';
export type {
  CancelOptions,
  DeleteQueueOptions,
  InspectorOptions,
  ListOptions,
  RepairOptions,
  ScanOptions,
  WaitForOptions,
} from './tasks/inspector-options.ts';
export { PeriodicTaskManager } from './tasks/scheduler/periodic-task-manager.ts';
export type {
  PeriodicTaskConfig,
  PeriodicTaskConfigProvider,
  PeriodicTaskManagerEvents,
  PeriodicTaskManagerOptions,
  SyncChange,
} from './tasks/scheduler/periodic-task-manager.ts';
export { taskQueueMetrics } from './tasks/queue-metrics.ts';
export type { TaskQueueMetrics, TaskQueueMetricsOptions } from './tasks/queue-metrics.ts';
export {
  type Handler,
  type Middleware,
  type ReceivedTask,
  RevokeTask,
  ServeMux,
  SkipRetry,
  type TaskContext,
} from './tasks/handler.ts';
export { Scheduler } from './tasks/scheduler/scheduler.ts';
export type { SchedulerEvents } from './tasks/scheduler/tick-runner.ts';
export type {
  BackfillOptions,
  EnqueueErrorHandler,
  PostEnqueue,
  PreEnqueue,
  ScheduleOptions,
  SchedulerOptions,
  ScheduleTick,
} from './tasks/scheduler/scheduler-options.ts';
export type { Logger } from './tasks/reporting.ts';
export type {
  GroupFailedEvent,
  ServerEvents,
  TaskCancelledEvent,
  TaskEvent,
  TaskFailedEvent,
  TaskOverEvent,
  TaskRecoveredEvent,
  TaskRetriedEvent,
} from './tasks/server/reports.ts';
export { defaultRetryDelayMs } from './tasks/server/server-options.ts';
export type {
  GroupAggregator,
  RetryDelay,
  ServerOptions,
  TaskErrorHandler,
} from './tasks/server/server-options.ts';
export { Server } from './tasks/server/server.ts';
export type { ServerStatus } from './tasks/server/server.ts';
export type { StoredTask, TaskMessage } from './tasks/task-options.ts';
export type { TaskOptions } from './tasks/task-options.ts';
export { TASK_CHANGES } from './tasks/task-state.ts';
export type { TaskChange, TaskChangeRule, TaskState } from './tasks/task-state.ts';
export {
  defineTask,
  type EnqueueEntry,
  type EnqueueRequest,
  type PayloadCheck,
  type StandardSchema,
  Task,
  type TaskData,
  type TaskReader,
  TaskType,
  type TaskTypeOptions,
} from './tasks/task.ts';
