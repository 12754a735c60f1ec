import { RedisProcess } from './redis-process.ts';

// A program that has a server: it prints which, and runs until it is ended, or ends.
const { port, folder } = await RedisProcess.start();
console.log(JSON.stringify({ port, folder }));
if (!process.argv.includes('and-go')) setInterval(() => undefined, 60_000);
