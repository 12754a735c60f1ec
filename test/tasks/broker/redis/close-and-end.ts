import { setTimeout as sleep } from 'node:timers/promises';
import { RedisConnection } from '../../../../src/tasks/broker/redis/connection.ts';

// A program that closes its connection: nothing may keep it alive afterwards, and it must print nothing.
const [url = '', state = ''] = process.argv.slice(2);
const connection = new RedisConnection({ url, timeoutMs: 60_000 });
const asked = connection.run((client) => client.ping()).catch(String);
if (state === 'ready' || state === 'listening') await asked;
if (state === 'listening') await connection.channels.subscribe('a', () => undefined);
if (state === 'refused' || state === 'paused') await sleep(300);
await connection.close();
await asked;
