import { setTimeout as sleep } from 'node:timers/promises';
import { RedisConnection } from '../../../../src/tasks/broker/redis/connection.ts';

// A program that has a connection and closes it: nothing may keep it alive afterwards, or be said by it.
const [url = '', state = ''] = process.argv.slice(2);
const connection = new RedisConnection({ url, timeoutMs: 60_000 });
const asked = connection.run((client) => client.ping()).catch(String);
if (state === 'ready' || state === 'listening') await asked;
if (state === 'listening') await connection.subscribe('a', () => undefined);
if (state === 'refused' || state === 'paused') await sleep(300);
await connection.close();
await asked;
