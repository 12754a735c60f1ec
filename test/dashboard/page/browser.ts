import { existsSync } from 'node:fs';

/** Chromium of the system, if there is one: `CHROMIUM` names another one. */
export const CHROMIUM = [
  process.env['CHROMIUM'] ?? '',
  ...['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`),
].find((path) => path !== '' && existsSync(path));

/** For `chromium.launch` of playwright-core. Tests may run as root, for whom Chromium has no sandbox. */
export const LAUNCH = {
  executablePath: CHROMIUM ?? '',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
} as const;
