import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium, type Browser, type Page } from 'playwright-core';

/** Chromium of the system, if there is one: `CHROMIUM` names another one. */
export const CHROMIUM = [
  process.env['CHROMIUM'] ?? '',
  ...['chromium', 'chromium-browser', 'google-chrome'].map((name) => `/usr/bin/${name}`),
].find((path) => path !== '' && existsSync(path));

/** Tests may run as root, for whom Chromium has no sandbox. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM ?? '',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-sync',
    ],
  });
}

/** A tab, and what went wrong in it: uncaught errors, dialogs, and what its content security policy has blocked. */
export interface Tab {
  readonly page: Page;
  readonly problems: string[];
  /** Goes to a view: the part of the address after `#`. */
  view(hash: string): Promise<void>;
  /** Resolves when the text is in the main part of the page. */
  sees(...texts: (string | RegExp)[]): Promise<void>;
  /** Presses a button, by its name. */
  press(name: string): Promise<void>;
  /** Presses a button of the open dialog. */
  confirm(name: string): Promise<void>;
}

export async function openTab(browser: Browser, url: string): Promise<Tab> {
  const context =
    browser.contexts()[0] ?? (await browser.newContext({ viewport: { width: 1280, height: 800 } }));
  const page = await context.newPage();
  page.setDefaultTimeout(60_000); // generous, as other limits of tests: the machine may be busy
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) problems.push(message.text());
  });
  await page.goto(url);
  const main = page.locator('main');
  return {
    page,
    problems,
    async view(hash) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    },
    async sees(...texts) {
      for (const text of texts) await main.getByText(text).filter({ visible: true }).first().waitFor();
    },
    async press(name) {
      await main.getByRole('button', { name, exact: true }).click();
    },
    async confirm(name) {
      await page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    },
  };
}

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

let axe: string | undefined;

/** What axe-core finds of serious or critical problems of accessibility, one line each. */
export async function seriousProblems(page: Page, rules?: readonly string[]): Promise<string[]> {
  // It is a package of test/dashboard, which tools/install.ts installs.
  axe ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe);
  const only = rules === undefined ? {} : { runOnly: { type: 'rule', values: rules } };
  const options = { resultTypes: ['violations'], ...only };
  const violations = await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  return (violations as readonly Violation[])
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}
