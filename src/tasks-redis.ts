/**
 * Tasks on Redis, for a fleet, compatible with asynq.
 *
 * @module escapement/tasks/redis
 */
export { RedisBroker } from './tasks/broker/redis/redis-broker.ts';
export type { LeaseThreadOptions, RedisBrokerOptions } from './tasks/broker/redis/redis-broker.ts';
export type { QueueLocation, RedisInfo } from './tasks/info.ts';
export type { BrokerSettings } from './tasks/broker/broker-settings.ts';
export type {
  RedisClientOptions,
  RedisConnectionOptions,
  RedisConnectionSettings,
  RedisHealth,
  RedisReachable,
  RedisUnavailable,
  RedisUrlOptions,
} from './tasks/broker/redis/connection-options.ts';
