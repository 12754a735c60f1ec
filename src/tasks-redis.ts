/** `escapement/tasks/redis`: tasks for a fleet, on Redis, beside asynq. */
export { RedisBroker } from './tasks/broker/redis/redis-broker.ts';
export type { RedisBrokerOptions, RedisBrokerSettings } from './tasks/broker/redis/redis-broker-options.ts';
export type {
  RedisClientOptions,
  RedisConnectionOptions,
  RedisConnectionSettings,
  RedisHealth,
  RedisUrlOptions,
} from './tasks/broker/redis/connection-options.ts';
