'use strict';

/*
 * Preloaded into a test of Node: the global functions and those that it requires are ours. Node's own modules keep the
 * host's, as they do in a program that uses this package.
 */
const Module = require('node:module');
const timers = require('escapement/timers');
const promises = require('escapement/timers/promises');

const OURS = new Map([
  ['timers', timers],
  ['timers/promises', promises],
]);

const load = Module._load;
Module._load = function (request, ...rest) {
  return OURS.get(request.replace(/^node:/, '')) ?? load.call(this, request, ...rest);
};
for (const name of ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'])
  globalThis[name] = timers[name];
