/**
 * `tsx tools/wheel-page.ts FILE` writes the wheels of a live timer as one HTML file, for the documentation site: it runs in the
 * reader's browser, and needs no server.
 */
import { writeFileSync } from 'node:fs';
import { buildWheelPage } from '../build-page.ts';

const [file = 'wheels.html'] = process.argv.slice(2);
writeFileSync(file, await buildWheelPage());
