/**
 * `node --import` this, to run TypeScript. The `paths` of tsconfig.json would lead `escapement` to the sources; this
 * configuration has none, so the demo runs what users get. Not the `tsx` command: on Ctrl-C that kills a program that
 * does not say within 30 ms that it heard the signal, and a busy server may not.
 */
import { URL, fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';

register({ tsconfig: fileURLToPath(new URL('../../tsconfig.run.json', import.meta.url)) });
