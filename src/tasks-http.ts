/**
 * Queues and tasks over HTTP, in the shape of the API of asynqmon.
 *
 * @module escapement/tasks/http
 */
export { tasksHandler } from './tasks/http/tasks-handler.ts';
export type { TasksHandler } from './tasks/http/tasks-handler.ts';
export type { QueueLocation, RedisInfo } from './tasks/info.ts';
export type {
  Authorization,
  AuthorizationChallenge,
  TasksHandlerOptions,
} from './tasks/http/tasks-handler-options.ts';
