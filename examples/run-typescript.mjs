/**
 * `node --import` this, to run TypeScript, with `escapement` resolved to the sources by the `paths` of tsconfig.json:
 * nothing has to be built. Not the `tsx` command: on Ctrl-C that kills a program that does not report within 30 ms that
 * it received the signal, and a busy server may not.
 */
import { URL, fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';

register({ tsconfig: fileURLToPath(new URL('../tsconfig.json', import.meta.url)) });
